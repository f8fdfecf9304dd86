"""The words of the demo: one woman, one assistant, four months, two evenings of film on a ferry quay.

A line that begins with ``U:`` or ``A:`` is a message of the user or the assistant, one with ``?:`` a message that
the configured model answers while the demo runs, one with ``!:`` such a message with the agreement below it.
Indented lines continue a message. Everything is invented.
"""

from __future__ import annotations

from typing import Final

AGREEMENT: Final = """\
HIRE AGREEMENT between Haldermouth Harbour Trust ("the Trust") and the Lantern Club ("the Hirer"), draft 3.
1. Premises. The Trust lets the Old Ferry Quay from bollard 14 to bollard 31, with the slipway and the former
ticket hall, but without the pontoon. The pontoon stays closed to the public at all times.
2. Period. From Thursday 3 July 2025, 07:00, to Sunday 6 July 2025, 12:00. Vehicles may enter the quay only between
07:00 and 17:00 on Thursday and between 08:00 and 12:00 on Sunday, one at a time, below 7.5 tonnes.
3. Fee. The fee is 2,150 euros including VAT, of which 30 percent is due on signature and the remainder by
20 June 2025. Harbour dues for the catering boat, if there is one, are charged apart at 48 euros a day.
4. Deposit. A deposit of 1,000 euros is paid with the remainder and returned within 21 days of the hire, less the
cost of repairs. Damage to the cobbles by stakes or anchors is charged at 85 euros per stone; ballast is allowed.
5. Cancellation. The Hirer may cancel free of charge until 31 May 2025. From 1 June to 20 June 2025 half of the fee
is owed, which is 1,075 euros; after 20 June 2025 the whole fee is owed. Cancellation is made in writing to
hire@harbourtrust.example and counts from the day on which it arrives.
6. Weather. If the harbour master closes the quay because of wind above 8 Beaufort or a flood warning, the fee is
returned in full, but no further claim exists. Rain alone is no reason for a refund.
7. Sound. Loudspeakers face the water. The level at the nearest dwelling, Chandler's Row 2, stays below 65 dB(A)
until 22:00 and below 55 dB(A) from 22:00 on. The Trust measures. After the second excess the Trust may switch off
the supply at once and without a refund. All sound ends at 23:30.
8. Electricity. The Trust provides one three-phase supply of 32 amperes at cabinet C7. Consumption is charged at
0.41 euros per kilowatt-hour. Generators are not permitted on the quay, whatever their size.
9. Safety. The Hirer keeps a lane of 3.5 metres free for the fire brigade along the whole of the quay, provides one
steward for every fifty visitors, and places a lifebuoy every thirty metres of water edge. A barrier of 1.1 metres
stands between the seats and the edge. No more than 280 visitors are admitted at one time.
10. Insurance. The Hirer shows public liability insurance of at least 3 million euros by 13 June 2025. Without the
certificate the keys of cabinet C7 are not handed over.
11. Food and drink. Glass is not permitted. The Hirer removes all waste by Sunday noon; what remains is removed by
the Trust at 60 euros an hour. Alcohol is sold only until 22:45 and only inside the marked area.
12. Nature. Between 1 April and 31 July no light may be pointed at the breakwater, where grey herons nest. The
projector's beam and the screen face inland, and the lamps on the slipway stay off.
13. Keys. Keys are handed over at the harbour office, Pier Road 5, by Ms Adeyemi, telephone extension 217, and are
returned there by Sunday 12:30. A lost key costs 140 euros.
14. Persons. On site the Hirer is represented by Ms Varga, in her absence by Ms Okafor. One of them is present from
one hour before the admission until the last visitor has left, and can be reached by telephone at all times.
15. Photographs. The Trust may use photographs of the two evenings in its yearly report, if no visitor can be
recognised in them. The name of the Trust is printed on the posters, at least 4 centimetres wide. The Hirer may
sell programmes and badges on the quay without a further fee, but no toys that whistle. Dogs are admitted on a lead,
except during the films; guide dogs are admitted at all times.
16. Changes. Changes of this agreement are made in writing and signed by both sides. Should one clause be void, the
others stand. The law of the place of the quay applies."""

SCENES: Final = (
    (
        "2025-03-04 09:10",
        "A film club, a quay, an idea",
        """
U: Hi! I'm Ines Varga and I run the Lantern Club, a film club in Haldermouth. I want to put on an open-air film
    festival called Lantern Nights: two evenings on the Old Ferry Quay, Friday 4 and Saturday 5 July 2025, about
    320 seats, with a total budget of 18,500 euros. Please help me to plan it until the last chair is folded.
A: What a lovely idea, Ines. I'll keep track of dates, money and open ends, so that nothing falls into the water.
    Shall we begin with the fixed points and then go through screen, sound, permits, films and tickets?
U: Yes please. Fixed: the two evenings, the quay, and that nobody pays more than 9 euros. I grew up two streets
    from there, so I want the neighbours to like it.
A: Noted: at most 9 euros a ticket, and neighbours first. Who works on it with you?
U: My nephew Tomasz builds the ticket page, Bea Okafor does the money, and old Mr. Lindqvist has projected films for
    forty years. I'm a nurse on night shifts, so write to me in the mornings.
A: Tomasz: ticket page. Bea: treasurer. Mr. Lindqvist: projection. You answer in the mornings. How should I write?
U: Short answers, no bullet points please. And always say amounts in euros with VAT included, Bea insists.
A: Short, no bullets, euros with VAT. Easy.
U: Oh, and there's a heron that sits on the mast at the end of the quay every single evening. We call him the Captain.
A: Then the Captain gets a free seat with a sea view, and every plan needs his approval. 😄
U: Haha, deal. What do I have to do first?
A: The permit. The town wants events on public water fronts registered fifteen weeks before, which leaves you until
    21 March 2025. Everything else can wait a week.
""",
    ),
    (
        "2025-03-06 08:40",
        "Permit",
        """
U: I went to the town hall. The form is sent, our reference is HM-2025-0417, and the clerk is called Mr. Brandt.
A: Good start. Reference HM-2025-0417, Mr. Brandt. Did he say when they decide?
U: By 15 May 2025 at the latest. He wants a safety plan, a sound plan and a seating plan with all distances.
A: Three plans, then. I'll draft the safety plan first, because the fire officer usually changes the number of seats.
U: He did say something about a lane for the fire brigade.
A: A lane of 3.5 metres along the quay. It costs you about two rows of seats, so don't promise 320 anywhere yet.
U: Hm. Okay. Bea has already printed 320 on the letter to the savings bank.
A: A letter can say "up to". Let's keep 320 as the plan until the fire officer has been there.
U: He comes on 27 March at ten. I'll bring coffee.
A: Coffee is the oldest safety plan in the world. I'll have the drawing ready by 26 March.
""",
    ),
    (
        "2025-03-11 09:05",
        "Screen and power",
        """
U: Screens! I have two offers. Brightfield Rentals has an inflatable one, 9 by 5 metres, for 3,950 euros for both
    evenings. Nordlicht has a rigid frame, 8 by 4.5 metres, for 4,400 euros.
A: The inflatable one is larger and cheaper, but its blower hums and it must come down at 6 Beaufort. A quay is windy.
U: I love the big one though. Let's go with the inflatable screen from Brightfield for 3,950 euros.
A: Decided: inflatable, Brightfield, 3,950 euros. I'd ask them for the blower's sound level in writing.
U: I asked them already: the blower makes 58 dB at five metres.
A: Audible in quiet scenes. It'll do if the blower stands behind the ticket hall with a ten-metre hose.
U: And power? Mr. Lindqvist's projector wants 16 amperes on its own.
A: The quay has a cabinet with 32 amperes, three-phase. Projector 16, sound 10, blower 6, lights 4, kettle 9: too much
    for one phase, fine when it's spread over three.
U: You counted the kettle.
A: Every festival that ever went dark went dark because of a kettle.
U: I'm writing that on the wall of the club. Should we rent a generator just in case?
A: A silent one of 20 kVA is about 640 euros for the weekend. Keep it as a question until we know what the harbour says.
""",
    ),
    (
        "2025-03-14 08:55",
        "The ticket page",
        """
U: Tomasz wants to know what he should build the ticket page with. He can do Python.
A: Something small: one page, a seat counter, a payment link and an e-mail with a code. For the data I'd use Postgres,
    because two people must never buy the same last seat.
U: He says Postgres is fine with him. Let's use Postgres for the ticket page then.
A: Good. A row per seat, a transaction per order, and nobody sits on anybody's lap.
U: Prices: 9 euros, 6 euros for students and under 16, members of the club get 25 percent off with the code LANTERN25.
A: So a member pays 6.75 euros, and a student member 4.50 euros. Shall the reduction add up?
U: No, please only one reduction per ticket, otherwise Bea faints.
A: One reduction per ticket. When do you want to start selling?
U: Ticket sales start on 2 June 2025 at noon and not earlier, because the permit must be there first.
A: Sale starts on 2 June at 12:00, after the permit of 15 May. That leaves two weeks for surprises.
U: There are never surprises. 😇
A: I've written that sentence down too, with today's date.
?: Quick check before I call Bea: which evenings is it, how many seats, and what is the total budget?
""",
    ),
    (
        "2025-03-20 09:20",
        "Films",
        """
U: Now the nice part. Films! I'd love to open with "The Salt Clock". It's 84 minutes.
A: Length matters more than you'd think. The sun sets at 21:48 on 4 July, so you can't start before 22:00, and the quay
    must be silent by 23:30. No film longer than 88 minutes, or the end is watched without sound.
U: Oh no. My favourite for Saturday has 131 minutes, so that one is out.
A: It belongs to a winter evening indoors. What else makes you happy?
U: "Paper Boats of Mirela", an animated one, 76 minutes. Children love it and I cry every time.
A: Then it's perfect. Friday "The Salt Clock", 84 minutes; Saturday "Paper Boats of Mirela", 76 minutes?
U: Agreed. Friday The Salt Clock, Saturday Paper Boats of Mirela. Both start at 22:00.
A: Decided. Now the rights: ask the distributors for a single open-air screening and name 280 to 320 seats.
U: I wrote to both. The Salt Clock costs 380 euros flat. Paper Boats wants 290 euros plus 12 percent of the box office.
A: With a full house at an average of 7.40 euros, those 12 percent are roughly 280 euros. Fair for a film that makes
    you cry.
U: Can there be a short film before each of them? Pupils of the Hanse School made two, five minutes each.
A: On Saturday easily. On Friday it'd be 22:00 plus 5 plus 84, which ends at 23:29. One minute for the applause.
U: Then on Friday the short one comes during the twilight at 21:50, who cares about contrast.
A: The Captain approves. Short film at 21:50 on Friday, at 22:00 on Saturday.
""",
    ),
    (
        "2025-03-27 12:30",
        "The fire officer",
        """
U: The fire officer was here. He liked the coffee and nothing else.
A: How many rows did he take?
U: All in all we are down to 280 seats. Correction for all your plans: not 320 but 280.
A: Corrected: 280 seats. With 280 the full house brings about 2,070 euros an evening instead of 2,370.
U: And he wants a barrier of 1.1 metres along the edge, lifebuoys every thirty metres, and one steward per fifty people.
A: That's six stewards each evening, nine lifebuoys and about 75 metres of barrier. The town's works yard lends barriers
    for nothing if you fetch them yourselves.
U: My cousin has a flatbed. I'll ask him for Thursday 3 July.
A: Good. I'll put him down for barriers on Thursday morning. Has he got a name?
U: Radu. He'll want to be paid in beer.
A: Radu, flatbed, Thursday morning, beer. The treasurer will need a receipt.
""",
    ),
    (
        "2025-04-02 09:00",
        "Money",
        """
U: Bea made a table. Screen 3,950, sound 2,200, rights 670, quay about 2,000, insurance 780, toilets 1,260, chairs
    1,400, printing 540, stewards' meals 300.
A: Sum: 13,100 euros. With a reserve of ten percent you're at 14,410, and 4,090 remain of the 18,500 for everything that
    nobody has thought of.
U: I have to correct myself, I'm so sorry: Bea says the budget is not 18,500 but 16,500 euros. I had counted the
    savings bank twice.
A: Corrected: the total budget is 16,500 euros. Then 2,090 remain after the reserve. Still sound, but no fireworks.
U: The Captain hates fireworks anyway.
A: Wise bird. What about a grant? The county has a culture fund for neighbourhood events.
U: The deadline is 30 April, up to 3,000 euros. They want a page about why it matters to the quarter.
A: I'll draft the page in your voice: the ferry, the empty quay, your street. You correct what is too sweet.
U: That's kind. Not too sweet, please. My grandmother sold tickets in that hall for twenty-two years.
A: That sentence is the application. The rest is decoration.
U: Okay now I have something in my eye.
A: We'll blame the wind. I'll send the draft on Monday 7 April.
""",
    ),
    (
        "2025-04-09 08:30",
        "A change of mind",
        """
U: Tomasz called. The hosting that the club already pays for has no Postgres at all. It only offers MySQL 8.4.
A: He could rent a small Postgres elsewhere, about 15 euros a month. Or he takes what is there.
U: No, let's not have another bill. MySQL then. We switch the ticket page from Postgres to MySQL 8.4.
A: Changed: MySQL 8.4 instead of Postgres. InnoDB tables, one transaction per order with SELECT … FOR UPDATE on the
    seat, and it's as safe as before.
U: He also asks where the seat codes come from.
A: Six characters without 0, O, 1 and I, made at random and unique in the table. People read them out in the dark.
U: Clever. He'll have a first version on 5 May.
A: First version on 5 May. I'd let Bea buy the first ticket: she finds every mistake that concerns money.
?: Remind me, because Tomasz is asking again: which database does the ticket page use now?
""",
    ),
    (
        "2025-04-16 09:15",
        "Neighbours and toilets",
        """
U: I rang at all the doors in Chandler's Row. Most were sweet. Number 2 is Mrs. Petrakis and she is not sweet.
A: What worries her?
U: The bass. Somebody had a wedding on the quay last year until three in the morning.
A: Invite her for the sound check on Thursday at 19:00 and give her the number that switches it off. People who hold the
    switch rarely use it.
U: I'll do that. She also has a cat called Admiral. A Captain and an Admiral, this is becoming a navy.
A: Then let's keep the chain of command in mind when we place the loudspeakers: facing the water, subwoofers off the
    ground.
U: Toilets: four cabins and one accessible for 1,260 euros from Kliff Sanitary, delivered Friday at eight.
A: Delivered on Thursday would be better, vehicles on the quay on a festival day make fire officers sad.
U: They can do Thursday at 14:00 for the same price. Booked.
A: Booked: Kliff Sanitary, Thursday 3 July at 14:00, 1,260 euros.
U: Who looks after the bar is still open. The rowing club wants to, but they want all of the profit.
A: Open question, then: who runs the bar, and for which share. I'd offer them half and the glory.
""",
    ),
    (
        "2025-04-24 07:50",
        "Things go wrong",
        """
U: Okay this morning is terrible. Brightfield has sold our screen to a car show. They just cancelled, in two lines.
A: I'm sorry. Was there a signed order?
U: There was an e-mail from them that says "reserved". Apparently that means nothing. I'm so angry!!!
A: Understandable. The rigid frame of Nordlicht was 4,400 euros. Shall I write to them at once?
U: Yes. No wait, I already called. It's 4,650 now because of the short notice, and they want an answer today.
A: That's 700 more than planned and it fits into the reserve. It also doesn't hum and stands up to 8 Beaufort.
U: Fine. Take it. We go with the rigid frame from Nordlicht, 8 by 4.5 metres, 4,650 euros, instead of the inflatable.
A: Changed: Nordlicht, rigid frame, 4,650 euros. I'll ask for a signed confirmation today, not a "reserved".
U: I said I wanted the big one from the start and now it's smaller AND more expensive. Ugh.
A: It is. From row fourteen nobody will notice half a metre, and the quiet scenes will be quiet.
U: Don't cheer me up before coffee, please.
A: Understood. Confirmation first, cheer later.
""",
    ),
    (
        "2025-04-29 07:35",
        "Worse",
        """
U: The payment provider rejected the club. "Incomplete documents." I uploaded everything. Twice!
A: Which document do they miss?
U: They don't say. It's a form letter. I've been on hold for forty minutes after a twelve-hour shift, this is
    ridiculous.
A: Clubs usually fail at the register extract: it must be younger than three months. Yours is from last October, I
    think.
U: ...it is from October. Why does nobody write that down anywhere?
A: Because form letters have no shame. A new extract costs 15 euros at the district court and takes three days.
U: I already told Tomasz we'd be ready on 5 May. That's not going to happen, is it.
A: He can build against the provider's test mode. Only real money waits for the extract.
U: And the county fund wants the application by tomorrow, and the draft you sent still has the wrong budget in it. It
    still says 18,500!
A: You're right, and I'm sorry: that's my mistake. The corrected page says 16,500 euros, asks for 3,000, and is ready to
    sign.
U: I told you weeks ago. I can't check everything twice, I'm exhausted.
A: You shouldn't have to. I've gone through all the papers: 280 seats, 16,500 euros and Nordlicht everywhere now.
U: Okay. Sent. I'm going to sleep.
A: Sleep well. Nothing is due before Friday.
""",
    ),
    (
        "2025-05-09 08:05",
        "The letter from the town",
        """
U: Mr. Brandt sent a letter. They want the sound to stop at 23:00, not at 23:30. Then we can't show anything!
A: At 23:00 The Salt Clock would lose its last half hour. May I see the sentence?
U: "In view of the complaint of a resident we intend to limit the event to 23:00." It's Mrs. Petrakis. I'm so fed up.
A: "Intend" means that they hear you first. You have until 14 May to answer. Did she come to see the loudspeakers?
U: She didn't even open the door. I'm disappointed, honestly. I wanted them to like it.
A: Then write to her, not to the town. Two sentences: what you'll do about the bass, and that the hall was your
    grandmother's.
U: You think that works?
A: I think a complaint is often a question that nobody answered.
U: Hm. And if it doesn't?
A: Then we ask for 23:30 on the two evenings only, with 55 dB(A) at her window, measured. I'd put both into the answer.
U: Still not sure whether we also need a plan for rain. Everything at once, of course.
A: Let's keep that one open for a week. The town first.
?: I'm tired and I've lost the thread. Until when do I have to answer the town?
""",
    ),
    (
        "2025-05-16 10:20",
        "Relief",
        """
U: The permit is here!!! I'm so happy! Both evenings until 23:30, signed by Mr. Brandt.
A: Congratulations! What happened?
U: Mrs. Petrakis came to my door with the cat under her arm. My grandmother gave her free tickets when she was nine. She
    withdrew the complaint and asked for a seat in the first row.
A: Row one, seat one, for Mrs. Petrakis and the Admiral. I'll mark it as sold.
U: I could hug everybody. The register extract came too, and the payment provider said yes within an hour.
A: Then nothing stands in the way of 2 June. And the county?
U: 2,500 euros from the culture fund! Not the full 3,000, but who cares. Our total budget is now 19,000 euros instead
    of 16,500.
A: 16,500 plus 2,500: the new budget is 19,000 euros. The reserve is whole again, screen included.
U: Thank you for staying calm when I wasn't. I was horrible in April.
A: You were a nurse after a night shift with a screen that drove off to a car show. You were fine.
U: Rain plan! I asked at the Net Loft. They have 150 seats under a roof and would keep both evenings free for 400 euros.
A: 150 of 280. Then in case of rain the first 150 orders are let in and the others get their money back?
U: Yes, let's do that. We decide at 14:00 on the day, by e-mail to everyone.
A: Decided: rain plan is the Net Loft, 150 seats, 400 euros, called at 14:00 on the day by e-mail.
""",
    ),
    (
        "2025-05-22 09:00",
        "The small print",
        """
U: Tomasz showed me the page yesterday. I bought a test ticket, my code was K7WRPE. Beautiful.
A: And Bea, did she find something?
U: She got both reductions on one ticket. Of course she did. He fixed it in ten minutes.
A: That's what treasurers are for. One reduction per ticket, tested now.
U: The harbour has sent its agreement at last. It's long. I'll paste it here so that we both have it.
A: Please do, all of it. I'll look for what costs money.
!: Here's the whole agreement, draft 3. Read it carefully, please, and keep it at hand.
?: How much of the fee is owed if we cancel from 1 June to 20 June 2025?
""",
    ),
    (
        "2025-05-28 08:45",
        "Consequences",
        """
U: So no generator on the quay, clause 8. That answers our old question.
A: It does: no generator, whatever its size. 640 euros saved, and the kettle moves to a phase of its own.
U: And clause 10, liability of at least 3 million euros by 13 June. Ours covers 2 million.
A: The insurer can raise it for one weekend. Ask for an event extension, it's usually below 120 euros.
U: 95 euros! Done on the phone. They send the certificate by 6 June.
A: A week before it's due. I'll remind you on the 6th.
U: I've signed and paid 645 euros, that's the 30 percent. 1,505 and the deposit of 1,000 are due on 20 June.
A: Noted: 2,505 euros by 20 June, fee and deposit together.
U: The rowing club says yes to half of the profit! They run the bar, last drinks at 22:45, no glass.
A: Decided, then: the rowing club runs the bar for half of the profit. That was our oldest open question.
U: What about the 47 bus? The last one leaves at 23:20, before the film ends.
A: That one is open. Ask the bus company for one extra departure at 23:50, they do it for football.
""",
    ),
    (
        "2025-06-02 12:20",
        "On sale",
        """
U: We are on sale!!! Sixty-one tickets in twenty minutes. I keep pressing reload.
A: Wonderful. Leave some load for the others. Which evening goes faster?
U: Saturday, of course. Children. 44 of the 61.
A: Then put the students' short film on Friday onto every poster in the school, it brings parents.
U: Great idea. Tomasz says MySQL is bored, one percent of a processor.
A: Boredom is the highest praise for a database.
U: The Captain sat on the ticket hall this morning, I swear he was counting.
A: He wants to know whether the lamps on the slipway stay off. They do, clause 12, his cousins nest there.
""",
    ),
    (
        "2025-06-19 09:30",
        "Last weeks",
        """
U: Status: Friday 233 of 280, Saturday sold out. I can't believe it.
A: That's 513 tickets. At an average of 7.40 euros it's close to 3,800 euros, 12 percent of Saturday's goes to Paper
    Boats.
U: The fee and the deposit are paid, 2,505 euros, a day early. Bea sent me a photo of herself smiling.
A: A historic document. The insurance certificate is with Ms Adeyemi?
U: Yes, since 6 June, extension 217. And the bus company says yes: an extra 47 at 23:50 on both evenings.
A: Then the last open question is closed. What remains is Thursday: barriers with Radu in the morning, toilets at 14:00,
    sound check with Mrs. Petrakis at 19:00.
U: Radu asks where he can park the flatbed.
A: Not on the quay after 17:00, clause 2. In Pier Road, next to the harbour office.
U: I'm so glad I started this. I was sure in April that it would all fall apart.
A: It nearly did, and you rang at the right door. How do you feel?
U: Relieved. And proud. And I need to iron a tablecloth for Mrs. Petrakis.
A: Row one, seat one, tablecloth. I'll add it to the seating plan.
""",
    ),
)

FIRST_QUESTION: Final = (
    "Before I fold the first chair, back to the very beginning: which two evenings of the open-air film festival, "
    "how many seats and what budget did I name?"
)
SECOND_QUESTION: Final = "And which database does the ticket page use, after we changed our minds?"
