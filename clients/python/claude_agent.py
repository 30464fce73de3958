"""claude-agent-sdk: one task. The settings are those of Claude Code, in the home folder."""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def main(task):
    options = ClaudeAgentOptions(allowed_tools=["Bash", "Write", "Read"], permission_mode="acceptEdits",
                                 setting_sources=["user"])
    async for message in query(prompt=task, options=options):
        if isinstance(message, ResultMessage):
            print(message.subtype, message.result)


asyncio.run(main(sys.argv[1]))
