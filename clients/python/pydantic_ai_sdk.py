"""pydantic-ai: agents on all three wires."""

import anthropic
import openai
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ThinkingPart
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.openai import (OpenAIChatModel, OpenAIChatModelSettings, OpenAIResponsesModel,
                                       OpenAIResponsesModelSettings)
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import base64

from suite import (ANSWER, BASE, BOTH_CITIES, CUTS, IMAGE, KEY, MODEL_WIRE, ONCE, ORIGIN, QUESTION, RECOVERED, WIRE,
                   is_in, model, run, weather)


class Weather(BaseModel):
    city: str
    rainy: bool


def named(id):
    if WIRE == "messages":
        client = anthropic.AsyncAnthropic(base_url=ORIGIN, api_key=KEY, timeout=30)
        return AnthropicModel(id, provider=AnthropicProvider(anthropic_client=client))
    client = openai.AsyncOpenAI(base_url=BASE, api_key=KEY, timeout=30)
    kind = OpenAIChatModel if WIRE == "chat" else OpenAIResponsesModel
    return kind(id, provider=OpenAIProvider(openai_client=client))


REASONING = {
    "messages": lambda: AnthropicModelSettings(anthropic_thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=4000),
    "chat": lambda: OpenAIChatModelSettings(openai_reasoning_effort="high"),
    "responses": lambda: OpenAIResponsesModelSettings(openai_reasoning_effort="high", openai_reasoning_summary="auto"),
}


def agent(kind="large", id=None, **more):
    return Agent(named(id or model(kind)), **more)


async def text():
    is_in((await agent().run(QUESTION)).output, ANSWER)


async def stream():
    async with agent().run_stream(QUESTION) as result:
        pieces = [piece async for piece in result.stream_text(delta=True)]
    is_in("".join(pieces), ANSWER)


async def tools():
    one = agent()
    one.tool_plain(weather, name="get_weather")
    is_in((await one.run(BOTH_CITIES)).output, "sunny in Paris", "sunny in Rome")


async def structured():
    said = (await agent(output_type=Weather).run(QUESTION)).output
    assert said.city == "sample city", said


async def image():
    content = ["What is it?", BinaryContent(base64.b64decode(IMAGE), media_type="image/png")]
    is_in((await agent().run(content)).output, "1 image")


async def reasoning():
    one = agent(model_settings=REASONING[WIRE]())
    first = await one.run(QUESTION)
    thoughts = [part for message in first.all_messages() for part in message.parts if isinstance(part, ThinkingPart)]
    assert thoughts, first.all_messages()
    is_in((await one.run("And then?", message_history=first.all_messages())).output, "And then?")


async def error():
    try:
        await agent(id="nobody").run(QUESTION)
    except ModelHTTPError as raised:
        assert raised.status_code == 404, raised
        return
    raise AssertionError("nothing was raised")


async def abort():
    async with agent("slow").run_stream(QUESTION) as result:
        async for _ in result.stream_text(delta=True):
            break


def once(kind):
    async def case():
        is_in((await agent(kind).run(QUESTION)).output, RECOVERED)
    return case


def cut(kind):
    async def case():
        ran = []
        one = agent(kind)

        def get_weather(city: str) -> str:
            """Weather of a city."""
            ran.append(city)
            return weather(city)

        one.tool_plain(get_weather)
        try:
            async with one.run_stream(QUESTION) as result:
                said = await result.get_output()
        except Exception:  # pylint: disable=broad-except
            assert not ran, "half a call was run"
            return
        raise AssertionError(f"nothing was raised: {said!r}, it ran {ran}")
    return case


NO_SUMMARY = "a chat request cannot ask a responses model for a summary of its reasoning"
run({
    "text": text, "stream": stream, "tools": tools, "structured": structured, "image": image,
    "reasoning": NO_SUMMARY if (WIRE, MODEL_WIRE) == ("chat", "responses") else reasoning,
    "error": error, "abort": abort,
    **{name: once(kind) for name, kind in ONCE.items()},
    **{name: cut(kind) for name, kind in CUTS.items()},
})
