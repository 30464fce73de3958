"""The classes that LangChain's standard tests are run with; langchain_standard.py runs them."""

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from suite import BASE, KEY, ORIGIN, WIRE, model

PARAMS = {
    "messages": {"model": model(), "api_key": KEY, "base_url": ORIGIN, "max_tokens": 4000},
    "chat": {"model": model(), "api_key": KEY, "base_url": BASE},
    "responses": {"model": model(), "api_key": KEY, "base_url": BASE, "use_responses_api": True, "store": False},
}


class TestStandard(ChatModelIntegrationTests):
    chat_model_class = ChatAnthropic if WIRE == "messages" else ChatOpenAI
    chat_model_params = PARAMS[WIRE]
    supports_image_inputs = True
    supports_pdf_inputs = WIRE == "messages"
    supports_anthropic_inputs = WIRE == "messages"
    supports_model_override = True
    model_override_value = model("small")
    has_tool_choice = True
    supports_json_mode = WIRE == "chat"
