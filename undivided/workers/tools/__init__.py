"""The tools that agents can call, and how a call is run."""

from undivided.workers.tools.blocking import blocking
from undivided.workers.tools.registry import Tools
from undivided.workers.tools.running import run_tool
from undivided.workers.tools.tool import Tool, ToolContext

__all__ = ["Tool", "ToolContext", "Tools", "blocking", "run_tool"]
