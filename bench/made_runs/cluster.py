"""An operator's agent: pods as a table, descriptions and logs as text, deployments and alerts as deep JSON."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from bench.made_runs.transcript import Transcript, digits, hexadecimal

_SYSTEM: Final = "You operate a cluster. Look before you change anything, and say what you are going to do."
_SERVICES: Final = ("checkout", "catalog", "mailer", "payments", "sessions", "thumbnails", "geocoder")
_SPACES: Final = ("shop-prod", "media-prod", "core-staging")
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
_FAULTS: Final = (
    ("CrashLoopBackOff", "panic: could not open the connection pool"),
    ("OOMKilled", "out of memory while the cache was filled"),
    ("ImagePullBackOff", "manifest unknown"),
)


@dataclass(frozen=True, slots=True)
class _Service:
    name: str
    space: str
    replica_set: str
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    image: str
    before: str
    config: str
    revision: int


def run(draw: random.Random, name: str) -> dict[str, Any]:
    """One run: find out what is wrong, where and since when, then fix it step by step."""
    space = draw.choice(_SPACES)
    nodes = [f"ip-10-{draw.randint(0, 99)}-{draw.randint(0, 255)}-{draw.randint(0, 255)}" for _ in range(4)]
    here, other, third = (_service(draw, space, nodes, title) for title in draw.sample(_SERVICES, 3))
    fault, reason = draw.choice(_FAULTS)
    talk = Transcript(_SYSTEM, draw)
    talk.user(
        f"{here.name} in {space} answers with 502 since this morning. Can you see why?",
        f"Alerts are firing for {here.name}. Namespace is {space}.",
        f"Pods of {here.name} keep restarting, please look into it ({space}).",
    )
    alert = _alert(draw, here)
    talk.call("list_alerts", [alert, _alert(draw, third)], state="firing")
    talk.call("list_pods", _table(draw, [here, other, third], fault), namespace=space)
    bad = here.pods[0]
    talk.assistant(f"{bad} is in {fault}. I'll look at it more closely.")
    talk.call("describe_pod", _described(here, fault, reason), name=bad, namespace=space)
    container = f"{here.name}-app"
    talk.call("get_logs", _logs(draw, reason), pod=bad, namespace=space, container=container, previous=True)
    talk.user("Did anything change lately?", "Who deployed last, and what?")
    talk.call("get_deployment", _deployment(draw, here), name=here.name, namespace=space)
    talk.call("rollout_history", _history(here), deployment=here.name, namespace=space)
    talk.assistant(
        f"Revision {here.revision} came with {here.image.rpartition(':')[2]}; before it was"
        f" {here.before.rpartition(':')[2]}. The pods of it fail: {reason}."
    )
    steps = [_roll_back, _restart, _scale, _drain, _silence, _incident, _configure]
    draw.shuffle(steps)
    for number, step in enumerate(steps[: draw.choice((4, 5))]):
        step(talk, here, other if number == 2 else here, alert)
    talk.user("Thanks, it looks better now.")
    talk.assistant("Good. I'll leave it at that.")
    return talk.row(name)


def _service(draw: random.Random, space: str, nodes: list[str], title: str) -> _Service:
    replica_set = f"{title}-{hexadecimal(draw, 9)}"
    pods = tuple(f"{replica_set}-{''.join(draw.choices(_SUFFIX, k=5))}" for _ in range(3))
    minor, patch = draw.randint(2, 30), draw.randint(1, 9)
    image = f"registry.example/{space.partition('-')[0]}/{title}"
    return _Service(
        name=title,
        space=space,
        replica_set=replica_set,
        pods=pods,
        nodes=tuple(draw.choices(nodes, k=len(pods))),
        image=f"{image}:1.{minor}.{patch}",
        before=f"{image}:1.{minor - 1}.{draw.randint(0, 9)}",
        config=f"{title}-env-{hexadecimal(draw, 6)}",
        revision=draw.randint(12, 90),
    )


def _table(draw: random.Random, services: list[_Service], fault: str) -> str:
    rows = ["NAME                                READY   STATUS             RESTARTS   AGE    NODE"]
    for number, service in enumerate(services):
        for place, (pod, node) in enumerate(zip(service.pods, service.nodes, strict=True)):
            status = fault if not number and place < 2 else "Running"
            ready, restarts = ("1/1", 0) if status == "Running" else ("0/1", draw.randint(4, 60))
            rows.append(f"{pod:<35} {ready:<7} {status:<18} {restarts:<10} {draw.randint(2, 40)}d    {node}")
    return "\n".join(rows)


def _described(service: _Service, fault: str, reason: str) -> str:
    return (
        f"Name:             {service.pods[0]}\nNamespace:        {service.space}\nService Account:  {service.name}-sa\n"
        f"Node:             {service.nodes[0]}\nControlled By:    ReplicaSet/{service.replica_set}\n"
        f"Containers:\n  {service.name}-app:\n    Image:      {service.image}\n    Limits:\n      memory:  512Mi\n"
        f"    Environment Variables from:\n      {service.config}  ConfigMap\n"
        f"Events:\n  Warning  BackOff  2m (x31 over 9m)  kubelet  {fault}: {reason}"
    )


def _logs(draw: random.Random, reason: str) -> str:
    lines = [
        f"2025-06-0{draw.randint(1, 9)}T0{draw.randint(1, 9)}:{draw.randint(10, 59)}:{draw.randint(10, 59)}Z "
        f"{level} trace={hexadecimal(draw, 16)} {text}"
        for level, text in (
            ("INFO", "starting"),
            ("INFO", "reading the configuration"),
            ("WARN", "slow answer from upstream"),
            ("ERROR", reason),
            ("INFO", "shutting down"),
        )
    ]
    return "\n".join(lines)


def _deployment(draw: random.Random, service: _Service) -> dict[str, Any]:
    return {
        "metadata": {
            "name": service.name,
            "namespace": service.space,
            "uid": f"{hexadecimal(draw, 8)}-{hexadecimal(draw, 4)}-4{hexadecimal(draw, 3)}-{hexadecimal(draw, 12)}",
            "resourceVersion": digits(draw, 9),
            "labels": {"app": service.name, "team": draw.choice(("red", "blue", "green"))},
            "annotations": {"deployment.kubernetes.io/revision": str(service.revision)},
        },
        "spec": {
            "replicas": len(service.pods),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": f"{service.name}-app",
                            "image": service.image,
                            "ports": [{"containerPort": draw.choice((8080, 9000, 3000))}],
                            "envFrom": [{"configMapRef": {"name": service.config}}],
                        }
                    ]
                }
            },
        },
        "status": {"replicas": len(service.pods), "readyReplicas": 1, "unavailableReplicas": 2},
    }


def _history(service: _Service) -> str:
    return f"REVISION  IMAGE\n{service.revision - 1}        {service.before}\n{service.revision}        {service.image}"


def _alert(draw: random.Random, service: _Service) -> dict[str, Any]:
    return {
        "fingerprint": hexadecimal(draw, 16),
        "status": "firing",
        "labels": {
            "alertname": draw.choice(("HighErrorRate", "PodRestarts", "LatencyP99")),
            "service": service.name,
            "namespace": service.space,
            "severity": draw.choice(("page", "warning")),
        },
        "startsAt": f"2025-06-0{draw.randint(1, 9)}T0{draw.randint(1, 9)}:{draw.randint(10, 59)}:00Z",
        "generatorURL": f"https://metrics.example/graph/{digits(draw, 5)}",
    }


_Alert = dict[str, Any]


def _roll_back(talk: Transcript, here: _Service, other: _Service, alert: _Alert) -> None:  # noqa: ARG001 - one shape
    talk.assistant(f"I would go back to revision {here.revision - 1}. Shall I?")
    talk.user("Yes, roll it back.", "Do it.")
    to = here.revision - 1
    talk.call("rollback", "deployment rolled back", deployment=here.name, namespace=here.space, to_revision=to)
    image = here.before
    talk.call("wait_for_rollout", "successfully rolled out", deployment=here.name, namespace=here.space, image=image)


def _restart(talk: Transcript, here: _Service, other: _Service, alert: _Alert) -> None:  # noqa: ARG001
    which = talk.draw.choice(other.pods[:2])
    talk.user(f"Delete the other bad pod of {other.name} as well.", f"Please restart a pod of {other.name}.")
    talk.call("delete_pod", f'pod "{which}" deleted', name=which, namespace=other.space)
    talk.assistant("It is being replaced.")


def _scale(talk: Transcript, here: _Service, other: _Service, alert: _Alert) -> None:  # noqa: ARG001
    count = talk.draw.randint(4, 8)
    talk.user(f"Scale {other.name} to {count} for now.")
    talk.call("scale", "scaled", deployment=other.name, namespace=other.space, replicas=count)
    talk.call("list_pods", f"{count} pods, all Running", namespace=other.space, selector=f"app={other.name}")


def _drain(talk: Transcript, here: _Service, other: _Service, alert: _Alert) -> None:  # noqa: ARG001
    node = here.nodes[0]
    talk.user("Is it the machine? Better take no new pods there.", "The node of the first pod looks bad. Cordon it.")
    talk.call("cordon_node", "node cordoned", node=node)
    talk.call("describe_node", f"{node}: Ready, SchedulingDisabled, memory 91 %", node=node)
    talk.assistant(f"{node} takes no new pods now.")


def _silence(talk: Transcript, here: _Service, other: _Service, alert: _Alert) -> None:  # noqa: ARG001
    talk.user("Silence that alert for an hour please.", "And stop paging people for it.")
    labels = alert["labels"]
    talk.call(
        "create_silence",
        {"silenceID": hexadecimal(talk.draw, 12)},
        fingerprint=alert["fingerprint"],
        alertname=labels["alertname"],
        duration="1h",
    )
    talk.assistant(f"{labels['alertname']} is silent for an hour.")


def _incident(talk: Transcript, here: _Service, other: _Service, alert: _Alert) -> None:
    number = f"INC-{digits(talk.draw, 5)}"
    talk.user("Open an incident for it.")
    opened = {"incident": number, "service": here.name, "status": "open"}
    talk.call("open_incident", opened, service=here.name, alert=alert["fingerprint"], severity="sev2")
    talk.assistant(f"{number} is open.")
    talk.user(f"Add that {other.name} was looked at too, and the link of the graph.")
    talk.call("comment_incident", "ok", incident=number, link=alert["generatorURL"], image=here.image)


def _configure(talk: Transcript, here: _Service, other: _Service, alert: _Alert) -> None:  # noqa: ARG001
    size = talk.draw.choice(("20", "40"))
    talk.user(f"Raise the pool to {size} in its configuration.", "Show me its config map.")
    talk.call("get_config_map", {"POOL_SIZE": "10", "CACHE": "on"}, name=here.config, namespace=here.space)
    talk.call("patch_config_map", "patched", name=here.config, namespace=here.space, key="POOL_SIZE", value=size)
    talk.assistant("The pods read it when they start.")
