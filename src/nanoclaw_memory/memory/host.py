"""The part `memory.host`: the host's state, and the scheduled tasks of this group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoclaw_memory.memory.group import Part
from nanoclaw_memory.types import TaskRun

if TYPE_CHECKING:
    from nanoclaw_memory.host.host import Host
    from nanoclaw_memory.host.tasks import Tasks


class HostPart(Part):
    """The host's state belongs to the main group; every group has its own tasks."""

    @property
    def state(self) -> Host:
        """Return chats, messages and groups; only the main group administers them, in private."""
        self._group.require_main("see the host's state")
        return self._group.host

    @property
    def tasks(self) -> Tasks:
        """Return the scheduled tasks of this group, or of all groups for the main one."""
        self._group.require_private("tasks")
        self._group.require_group()
        return self._group.host.tasks(self._group.scope.group)

    def run_tasks(self, command: str, timeout: float = 600) -> list[TaskRun]:
        """Run the tasks that are due, each as a command without a shell; return the runs."""
        return self._group.host.run_commands(self.tasks, command, timeout)
