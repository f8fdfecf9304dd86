import collections, json, sys, threading, time
from app.services.conversations import NewConversation
from app.services.manual import CompactInput
from app.services.appending import MessageDraft
from tests.acceptance.test_preset_handoff import HANDOVER, JOB
from tests.acceptance.talk import lines
from app.domain.model_io import Proposal
from app.domain.conversation import Usage
from tests.integration.services import Service

async def handover(request):
    return Proposal(text=json.dumps({**HANDOVER, "dropped": [], "anchors": []}), finish="stop", model="fake", usage=Usage(input_tokens=5, output_tokens=6))

import pytest
@pytest.mark.parametrize("n",[4,16,64])
async def test_it(begin, tenant, n, monkeypatch):
    from functools import lru_cache
    from app.domain.segments import reading
    monkeypatch.setattr(reading,"_read",lru_cache(maxsize=n)(reading._read.__wrapped__))
    service = Service(begin, tenant, handover)
    c = (await service.container.conversations.create(tenant, NewConversation(preset="handoff", policy={"summarizer":"compaction_model","max_tokens":-1}))).conversation.id
    said = lines(40*64); per = 64
    big = [MessageDraft(role=("user","assistant")[n%2], content=" ".join(t for _, t in said[n*per:(n+1)*per])[:8000]) for n in range(40)]
    drafts = [MessageDraft(role=r, content=t) for r, t in JOB] + big
    t0=time.perf_counter(); await service.container.messages.append(tenant, c, drafts); print("append", time.perf_counter()-t0)
    counts=collections.Counter(); own=collections.Counter(); stop=[]
    def sample():
        mine=threading.get_ident()
        while not stop:
            for tid, f in sys._current_frames().items():
                if tid==mine: continue
                seen=set(); first=True
                while f:
                    k=(f.f_code.co_filename.replace('/work/main/',''), f.f_code.co_name)
                    if first: own[k]+=1; first=False
                    if k not in seen and k[0].startswith('app/'): seen.add(k); counts[k]+=1
                    f=f.f_back
            time.sleep(0.005)
    th=threading.Thread(target=sample,daemon=True); th.start()
    t0=time.perf_counter(); c0=time.process_time()
    v=await service.container.manual.compact(tenant, c, CompactInput(), timeout=60)
    print("compact", time.perf_counter()-t0, "cpu", time.process_time()-c0, v.compaction.status, v.compaction.messages_covered)
    stop.append(1); th.join()
    print(n, reading._read.cache_info())
