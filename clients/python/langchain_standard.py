"""LangChain's own standard integration tests, as they are published; langchain_cases.py has their settings."""

import json
import os
import sys

import pytest

# The tests that need a real model or the internet.
OMITTED = {
    "test_tool_calling": "only a real model can compute the arguments",
    "test_tool_calling_async": "only a real model can compute the arguments",
    "test_agent_loop": "only a real model can choose the tool",
    "test_unicode_tool_call_integration": "only a real model can find the arguments in the text",
    "test_json_mode": "only a real model can find the schema in the text",
    "test_image_inputs": "the image is fetched from the internet",
    "test_pdf_inputs": "the document is fetched from the internet",
    "test_anthropic_inputs": "the image is fetched from the internet",
}


class Report:
    """Prints a line for each test, in the form that `run` prints for a case."""

    def pytest_collection_modifyitems(self, items):
        for name in {item.originalname for item in items} & OMITTED.keys():
            self.say(case=name, omitted=OMITTED[name])
        items[:] = [item for item in items if item.originalname not in OMITTED]

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split("::")[-1]
        if report.failed:
            self.say(case=name, failed=str(report.longrepr)[-500:])
        elif report.when == "call" and report.passed:
            self.say(case=name)

    def say(self, **said):
        print("\nCASE " + json.dumps(said), flush=True)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    cases = os.path.join(here, "langchain_cases.py")
    # All tests share an event loop, because a client keeps its connections from test to test.
    code = pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", "--asyncio-mode=auto",
                        "-o", "asyncio_default_test_loop_scope=session", cases, *sys.argv[1:]],
                       plugins=[Report()])
    # Code 1 means failed tests, and each of these was printed.
    sys.exit(0 if code in (0, 1) else code)
