"""The tree of a Claude Code transcript and the branch of it that is the story (transcript-formats §3.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from cassettes.transcripts.clock import epoch_ms
from cassettes.transcripts.lines import Record
from cassettes.transcripts.script import Report

JsonObject = dict[str, Any]


class Node(msgspec.Struct, kw_only=True, eq=False):
    """A record with a place in the tree. `index` is its position in the file."""

    index: int
    line: int
    type: str
    uuid: str
    parent_uuid: str
    logical_parent: str
    sidechain: bool
    agent_id: str
    time: int
    value: JsonObject
    parent: Node | None = None
    children: list[Node] = msgspec.field(default_factory=list)


def text_of(value: object) -> str:
    """A member that should be text."""
    return value if isinstance(value, str) else ""


def make_nodes(records: Iterable[Record], report: Report) -> list[Node]:
    """The enveloped records of a file; a repeated record is left out, an other one with its uuid is kept."""
    nodes: list[Node] = []
    seen: dict[str, list[int]] = {}
    for record in records:
        value = record.value
        uuid = text_of(value.get("uuid"))
        if not uuid:
            continue
        known = seen.setdefault(uuid, [])
        identity = hash(json.dumps(_identity(value), sort_keys=True))
        if identity in known:
            report.count("folded", "repeated record")
            continue
        if known:
            report.count("notes", "two records with one uuid")
        known.append(identity)
        nodes.append(
            Node(
                index=len(nodes),
                line=record.line,
                type=text_of(value.get("type")),
                uuid=uuid,
                parent_uuid=text_of(value.get("parentUuid")),
                logical_parent=text_of(value.get("logicalParentUuid")),
                sidechain=value.get("isSidechain") is True,
                agent_id=text_of(value.get("agentId")),
                time=epoch_ms(value.get("timestamp")),
                value=value,
            )
        )
    return nodes


def _identity(value: JsonObject) -> JsonObject:
    """What makes two copies of a record equal: a resumed session copies it with another session and parent."""
    return {name: value.get(name) for name in ("type", "message", "content", "attachment", "subtype", "data")}


def link(nodes: list[Node], report: Report) -> list[Node]:
    """Set parents and children; the roots in file order. A missing parent makes a root, a cycle is cut."""
    by_uuid: dict[str, list[Node]] = {}
    for node in nodes:
        by_uuid.setdefault(node.uuid, []).append(node)
    for node in nodes:
        wanted = node.parent_uuid or node.logical_parent
        if not wanted:
            continue
        if wanted == node.uuid:
            report.count("notes", "record that is its own parent")
            continue
        candidates = by_uuid.get(wanted)
        if candidates is None:
            report.count("notes", "parent not in the file")
            continue
        earlier = [candidate for candidate in candidates if candidate.index < node.index]
        node.parent = earlier[-1] if earlier else candidates[0]
    _cut_cycles(nodes, report)
    for node in nodes:
        if node.parent is not None:
            node.parent.children.append(node)
    return [node for node in nodes if node.parent is None]


def _cut_cycles(nodes: list[Node], report: Report) -> None:
    state: dict[int, int] = {}  # 1 = on the current walk, 2 = known to end in a root
    for start in nodes:
        walk: list[Node] = []
        node: Node | None = start
        while node is not None and state.get(node.index) is None:
            state[node.index] = 1
            walk.append(node)
            node = node.parent
        if node is not None and state[node.index] == 1:
            cycle = walk[walk.index(node) :]
            min(cycle, key=lambda member: member.index).parent = None
            report.count("notes", "cycle of parents")
        for member in walk:
            state[member.index] = 2


def live_story(roots: list[Node], is_prompt: Callable[[Node], bool], report: Report) -> list[Node]:
    """The records that the session went through, in file order.

    In each tree that is the chain from the last leaf by file position, and every side branch without a prompt:
    parallel results, progress and hooks hang aside too. A side branch with a prompt was left by the person.
    """
    story: list[Node] = []
    for root in roots:
        story.extend(_live_tree(root, is_prompt, report))
    story.sort(key=lambda node: node.index)
    return story


def _live_tree(root: Node, is_prompt: Callable[[Node], bool], report: Report) -> list[Node]:
    members = _subtree(root)
    talk = [node for node in members if node.type in ("user", "assistant", "attachment", "system")] or members
    leaf = max(talk, key=lambda node: node.index)
    chain: set[int] = set()
    node: Node | None = leaf
    while node is not None:
        chain.add(node.index)
        node = node.parent
    kept: list[Node] = []
    for member in members:
        if member.index in chain:
            kept.append(member)
            for child in member.children:
                if child.index in chain:
                    continue
                branch = _subtree(child)
                prompts = [at for at in branch if is_prompt(at)] if child is not leaf else []
                if prompts:
                    report.count("notes", "abandoned branch")
                    report.count("folded", "record of an abandoned branch", len(branch))
                    report.branches.append(_title(min(prompts, key=lambda at: at.index)))
                else:
                    kept.extend(branch)
    return kept


def _title(node: Node) -> str:
    message = node.value.get("message")
    content = message.get("content") if isinstance(message, dict) else ""
    if isinstance(content, list):
        content = " ".join(text_of(block.get("text")) for block in content if isinstance(block, dict))
    return text_of(content)[:200]


def _subtree(root: Node) -> list[Node]:
    members: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        members.append(node)
        waiting.extend(node.children)
    return members
