"""`manage.py create_demo`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from cassettes.management.importing import outcomes
from cassettes.viewing.launcher import LAUNCHER

_DATA = Path(settings.BASE_DIR) / "tests" / "data" / "providers"
_DEMO = (
    ("claude-transcript-coding-2.1.332", "Claude Code: a small coding task"),
    ("claude-transcript-interactive", "Claude Code: questions and a plan"),
    ("claude-transcript-subagent", "Claude Code: work given to subagents"),
    ("claude-transcript-interrupt", "Claude Code: interrupted by the person"),
    ("claude-transcript-errors", "Claude Code: errors of the model service"),
    ("codex-rollout-coding", "Codex: a small coding task"),
    ("codex-rollout-approvals", "Codex: commands that needed approval"),
    ("codex-rollout-interrupt", "Codex: interrupted by the person"),
    ("codex-sessions/rollout-subagent", "Codex: work given to subagents"),
)


class Command(BaseCommand):
    """Fills an installation with something to watch."""

    help = "Import the demo transcripts. What is there already stays as it is."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            for stem, name in _DEMO:
                for outcome in outcomes(_DATA / f"{stem}.jsonl", name):
                    if outcome["replay"] != "equal":
                        raise CommandError(f"{stem}: {outcome['replay']}")
                    if outcome["created"]:
                        self.stdout.write(f"made “{name}”")
        finally:
            LAUNCHER.close()
