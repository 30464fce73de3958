"""openai-agents: an agent that calls its functions, on chat and on responses."""

import openai
from agents import (Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool,
                    set_tracing_disabled)
from openai.types.shared import Reasoning
from pydantic import BaseModel

from suite import (ANSWER, BASE, BOTH_CITIES, CUTS, IMAGE, KEY, ONCE, QUESTION, RECOVERED, WIRE, is_in, model, run,
                   weather)

set_tracing_disabled(True)
KINDS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


class Weather(BaseModel):
    city: str
    rainy: bool


@function_tool
def get_weather(city: str) -> str:
    """Weather of a city."""
    return weather(city)


def agent(kind="large", id=None, effort=None, **more):
    client = openai.AsyncOpenAI(base_url=BASE, api_key=KEY, timeout=30)
    settings = ModelSettings(store=False)
    if effort:
        settings.reasoning = Reasoning(effort=effort, summary="auto" if WIRE == "responses" else None)
        settings.response_include = ["reasoning.encrypted_content"] if WIRE == "responses" else None
    return Agent(name="one", model=KINDS[WIRE](model=id or model(kind), openai_client=client), model_settings=settings,
                 **more)


async def ask(content=QUESTION, **more):
    return (await Runner.run(agent(**more), content)).final_output


async def text():
    is_in(await ask(), ANSWER)


async def stream():
    result = Runner.run_streamed(agent(), QUESTION)
    async for _ in result.stream_events():
        pass
    is_in(result.final_output, ANSWER)


async def tools():
    is_in(await ask(BOTH_CITIES, tools=[get_weather]), "sunny in Paris", "sunny in Rome")


async def structured():
    said = await ask(output_type=Weather)
    assert said == Weather(city="sample city", rainy=True), said


async def image():
    url = f"data:image/png;base64,{IMAGE}"
    content = [{"type": "input_image", "detail": "auto", "image_url": url}, {"type": "input_text", "text": "What is it?"}]
    is_in(await ask([{"role": "user", "content": content}]), "1 image")


async def reasoning():
    first = await Runner.run(agent(effort="high"), QUESTION)
    assert any(item.type == "reasoning_item" for item in first.new_items), first.new_items
    second = await Runner.run(agent(effort="high"), [*first.to_input_list(), {"role": "user", "content": "And then?"}])
    is_in(second.final_output, "And then?")


async def error():
    try:
        await ask(id="nobody")
    except openai.NotFoundError:
        return
    raise AssertionError("nothing was raised")


async def abort():
    result = Runner.run_streamed(agent("slow"), QUESTION)
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            result.cancel()


def once(kind):
    async def case():
        is_in(await ask(kind=kind), RECOVERED)
    return case


def cut(kind):
    async def case():
        ran = []

        @function_tool(name_override="get_weather")
        def noted(city: str) -> str:
            """Weather of a city."""
            ran.append(city)
            return weather(city)

        result = Runner.run_streamed(agent(kind, tools=[noted]), QUESTION, max_turns=2)
        try:
            async for _ in result.stream_events():
                pass
        except Exception:  # pylint: disable=broad-except
            assert not ran, "half a call was run"
            return
        raise AssertionError(f"nothing was raised: {result.final_output!r}, it ran {ran}")
    return case


run({
    "text": text, "stream": stream, "tools": tools, "structured": structured, "image": image,
    "reasoning": reasoning if WIRE == "responses"
    else "on chat the SDK reads the field `reasoning`, but models of this wire send `reasoning_content`",
    "error": error, "abort": abort,
    **{name: once(kind) for name, kind in ONCE.items()},
    **{name: cut(kind) for name, kind in CUTS.items()},
})
