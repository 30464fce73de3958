"""LlamaIndex: its two vendors' models on all three wires."""

import openai
import anthropic
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ThinkingBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.anthropic import utils as anthropic_utils
from llama_index.llms.openai import OpenAI, OpenAIResponses
from llama_index.llms.openai import utils as openai_utils
from pydantic import BaseModel

from suite import (ANSWER, BASE, BOTH_CITIES, CUTS, IMAGE, KEY, ONCE, ORIGIN, QUESTION, RECOVERED, WIRE, is_in, model,
                   raises, run, weather)


class Weather(BaseModel):
    city: str
    rainy: bool


def llm(kind="large", id=None, **more):
    id = id or model(kind)
    if WIRE == "messages":
        return Anthropic(model=id, base_url=ORIGIN, api_key=KEY, max_tokens=4000, timeout=30, **more)
    make = OpenAI if WIRE == "chat" else OpenAIResponses
    return make(model=id, api_base=BASE, api_key=KEY, timeout=30, **more)


def user(*blocks):
    return [ChatMessage(role=MessageRole.USER, blocks=list(blocks))]


QUESTIONS = user(TextBlock(text=QUESTION))


def text():
    is_in(llm().chat(QUESTIONS).message.content, ANSWER)


def stream():
    is_in("".join(piece.delta or "" for piece in llm().stream_chat(QUESTIONS)), ANSWER)


def tools():
    tool = FunctionTool.from_defaults(weather, name="get_weather")
    one = llm()
    asked = user(TextBlock(text=BOTH_CITIES))
    said = one.chat_with_tools([tool], chat_history=asked, allow_parallel_tool_calls=True)
    calls = one.get_tool_calls_from_response(said, error_on_no_tool_call=True)
    assert len(calls) == 2, calls
    results = [ChatMessage(role=MessageRole.TOOL, content=weather(**call.tool_kwargs),
                           additional_kwargs={"tool_call_id": call.tool_id}) for call in calls]
    again = one.chat_with_tools([tool], chat_history=[*asked, said.message, *results])
    is_in(again.message.content, "sunny in Paris", "sunny in Rome")


def structured():
    said = llm().as_structured_llm(Weather).chat(QUESTIONS).raw
    assert said.city == "sample city", said


def image():
    picture = ImageBlock(image=IMAGE.encode(), image_mimetype="image/png")
    is_in(llm().chat(user(picture, TextBlock(text="What is it?"))).message.content, "1 image")


def reasoning():
    one = llm(thinking_dict={"type": "enabled", "budget_tokens": 1024})
    first = one.chat(QUESTIONS).message
    assert any(isinstance(block, ThinkingBlock) for block in first.blocks), first.blocks
    is_in(one.chat([*QUESTIONS, first, *user(TextBlock(text="And then?"))]).message.content, "And then?")


def error():
    raises((openai.NotFoundError, anthropic.NotFoundError), lambda: llm(id="nobody").chat(QUESTIONS))


def once(kind):
    return lambda: is_in(llm(kind).chat(QUESTIONS).message.content, RECOVERED)


def cut(kind):
    """Reads a cut stream. On responses the SDK raises nothing: it ignores the event that reports the failure."""
    def case():
        raises((openai.APIError, anthropic.APIError), lambda: list(llm(kind).stream_chat(QUESTIONS)))
    return case if WIRE != "responses" else "the SDK ignores the event response.failed of the responses wire"


# LlamaIndex needs the context window of each model id, and has a table of known ids. Users add theirs like this.
OURS = {id: 128_000 for id in ("nobody", *map(model, ("large", "slow", *ONCE.values(), *CUTS.values())))}
openai_utils.ALL_AVAILABLE_MODELS.update(OURS)
openai_utils.CHAT_MODELS.update(OURS)
anthropic_utils.CLAUDE_MODELS.update(OURS)

run({
    "text": text, "stream": stream, "tools": tools, "structured": structured if WIRE != "messages" else "the SDK asks unknown models for JSON in a text, without a schema", "image": image,
    "reasoning": reasoning if WIRE == "messages" else "the SDK's class OpenAI requests reasoning only from models that it knows",
    "error": error, "abort": "the connection stays open when a program closes the stream of the SDK",
    **{name: once(kind) for name, kind in ONCE.items()},
    **{name: cut(kind) for name, kind in CUTS.items()},
})
