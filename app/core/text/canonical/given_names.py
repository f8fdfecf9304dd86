"""Common given names: at the start of a sentence a capital letter does not tell a name."""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

from typing import Final

GIVEN_NAMES: Final[frozenset[str]] = frozenset(
    """aaron adam adrian alan albert alex alexander alexandra alice amanda amy andrea andrew angela ann anna anne
        anthony
        antonio barbara ben benjamin bob brian bruce carl carla carlos carol caroline catherine charles charlotte chris
        christian christine christopher clara claire claudia daniel david deborah dennis diana diego donald dorothy
        edward elena elizabeth ellen emily emma eric erik eva evan felix fiona frank fred gabriel gary george gerald
        greg gregory hannah harold harry heather helen henry ian igor irene isabel ivan jack jacob james jane janet
        jason
        jean jeff jeffrey jennifer jeremy jessica jim joan joe john jonathan jordan jose joseph joshua juan julia julian
        julie karen kate katherine kathleen keith kelly kenneth kevin kyle larry laura lauren lena leo leon liam linda
        lisa louis lucas lucy luis luke marco margaret maria marie marina martha martin mary matthew max megan melissa
        michael michelle mike mohamed mohammed monica nancy natalie nathan nicholas nicole nina noah nora olga oliver
        olivia omar oscar pamela patricia patrick paul paula peter philip rachel ralph raymond rebecca richard robert
        roger ronald ruth ryan sam samantha samuel sandra sara sarah scott sean sergei sharon simon sofia sophia stella
        stephen steve steven susan teresa thomas tim timothy tom tony vanessa victor victoria vincent walter wendy
        william yusuf zoe
        александр алексей алина алиса алла анастасия анатолий андрей анна антон аня арина аркадий артём артем борис
        вадим валентина валерий варвара василий вера виктор виктория виталий владимир владислав вячеслав галина геннадий
        георгий глеб григорий даниил дарья денис дмитрий евгений евгения егор екатерина елена елизавета иван игорь илья
        инна ирина катя кирилл константин ксения лариса лев леонид лидия любовь людмила максим маргарита марина мария
        марк маша михаил надежда наталья наташа никита николай нина оксана олег ольга павел пётр петр полина роман
        руслан
        саша светлана семён сергей софья станислав степан таня тарас татьяна тимофей ульяна федор фёдор юлия юрий яна
        ярослав""".split()
)
"""In small letters."""
