// openai-go: chat completions and responses.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"triwire.example/clients/suite"
)

var (
	client = openai.NewClient(option.WithBaseURL(suite.Base), option.WithAPIKey(suite.Key))
	ctx    = context.Background()
)

func main() {
	if suite.Wire == "chat" {
		suite.Run(chatCases())
	} else {
		suite.Run(responsesCases())
	}
}

func chat(kind string, content string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    suite.Model(kind),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(content)},
	}
}

func complete(asked openai.ChatCompletionNewParams) (*openai.ChatCompletionMessage, error) {
	said, err := client.Chat.Completions.New(ctx, asked)
	if err != nil {
		return nil, err
	}
	return &said.Choices[0].Message, nil
}

func hasChat(asked openai.ChatCompletionNewParams, parts ...string) error {
	said, err := complete(asked)
	if err != nil {
		return err
	}
	return suite.Has(said.Content, parts...)
}

func chatTools() []openai.ChatCompletionToolUnionParam {
	return []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "get_weather", Parameters: suite.Schema}),
	}
}

func chatCases() []suite.Case {
	cases := []suite.Case{
		{"text", func() error { return hasChat(chat("large", suite.Question), suite.Answer) }},
		{"stream", func() error {
			text, err := readChat(chat("large", suite.Question))
			return errors.Join(err, suite.Has(text, suite.Answer))
		}},
		{"tools", chatToolsCase},
		{"structured", func() error {
			asked := chat("large", suite.Question)
			asked.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "weather", Schema: suite.Schema, Strict: openai.Bool(true)},
			}
			return hasChat(asked, "sample city")
		}},
		{"image", func() error {
			asked := chat("large", "")
			asked.Messages[0] = openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + suite.Image}),
				openai.TextContentPart("What is it?"),
			})
			return hasChat(asked, "1 image")
		}},
		{"reasoning", func() error {
			asked := chat("large", suite.Question)
			asked.ReasoningEffort = shared.ReasoningEffortHigh
			said, err := client.Chat.Completions.New(ctx, asked)
			if err == nil && said.Usage.CompletionTokensDetails.ReasoningTokens == 0 {
				return errors.New("no reasoning tokens were reported")
			}
			return err
		}},
		{"error", func() error {
			asked := chat("large", suite.Question)
			asked.Model = "nobody"
			_, err := complete(asked)
			return isStatus(err, 404)
		}},
		{"abort", func() error {
			stream := client.Chat.Completions.NewStreaming(ctx, chat("slow", suite.Question))
			for stream.Next() {
				if choices := stream.Current().Choices; len(choices) > 0 && choices[0].Delta.Content != "" {
					return stream.Close()
				}
			}
			return errors.Join(stream.Err(), errors.New("the stream had no text, so it was not aborted"))
		}},
	}
	for name, kind := range suite.Once {
		cases = append(cases, suite.Case{Name: name, Do: func() error { return hasChat(chat(kind, suite.Question), suite.Recovered) }})
	}
	for name, kind := range suite.Cuts {
		cases = append(cases, suite.Case{Name: name, Do: func() error {
			asked := chat(kind, suite.Question)
			asked.Tools = chatTools()
			text, err := readChat(asked)
			if err == nil {
				return fmt.Errorf("no error was reported: %q", text)
			}
			return nil
		}})
	}
	return cases
}

func readChat(asked openai.ChatCompletionNewParams) (string, error) {
	stream := client.Chat.Completions.NewStreaming(ctx, asked)
	all := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if stream.Err() != nil || len(all.Choices) == 0 {
		return "", stream.Err()
	}
	return all.Choices[0].Message.Content, nil
}

func chatToolsCase() error {
	asked := chat("large", suite.BothCities)
	asked.Tools = chatTools()
	said, err := complete(asked)
	if err != nil {
		return err
	}
	if len(said.ToolCalls) != 2 {
		return fmt.Errorf("%d calls", len(said.ToolCalls))
	}
	asked.Messages = append(asked.Messages, said.ToParam())
	for _, call := range said.ToolCalls {
		asked.Messages = append(asked.Messages, openai.ToolMessage(suite.Weather(call.Function.Arguments), call.ID))
	}
	return hasChat(asked, "sunny in Paris", "sunny in Rome")
}

func respond(kind string, content string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: suite.Model(kind),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser),
		}},
	}
}

func hasResponse(asked responses.ResponseNewParams, parts ...string) error {
	said, err := client.Responses.New(ctx, asked)
	if err != nil {
		return err
	}
	return suite.Has(said.OutputText(), parts...)
}

func responseTools() []responses.ToolUnionParam {
	return []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", suite.Schema, true)}
}

func responsesCases() []suite.Case {
	cases := []suite.Case{
		{"text", func() error { return hasResponse(respond("large", suite.Question), suite.Answer) }},
		{"stream", func() error {
			last, err := readResponse(respond("large", suite.Question))
			return errors.Join(err, suite.Has(last.Response.OutputText(), suite.Answer))
		}},
		{"tools", responseToolsCase},
		{"structured", func() error {
			asked := respond("large", suite.Question)
			asked.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("weather", suite.Schema)
			return hasResponse(asked, "sample city")
		}},
		{"image", func() error {
			asked := respond("large", "")
			picture := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
			picture.OfInputImage.ImageURL = openai.String("data:image/png;base64," + suite.Image)
			content := responses.ResponseInputMessageContentListParam{picture, responses.ResponseInputContentParamOfInputText("What is it?")}
			asked.Input.OfInputItemList[0] = responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser)
			return hasResponse(asked, "1 image")
		}},
		{"reasoning", func() error {
			asked := respond("large", suite.Question)
			asked.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortHigh, Summary: shared.ReasoningSummaryAuto}
			said, err := client.Responses.New(ctx, asked)
			if err == nil && said.Output[0].Type != "reasoning" {
				return fmt.Errorf("the first item is of type %q", said.Output[0].Type)
			}
			return err
		}},
		{"error", func() error {
			asked := respond("large", suite.Question)
			asked.Model = "nobody"
			_, err := client.Responses.New(ctx, asked)
			return isStatus(err, 404)
		}},
		{"abort", func() error {
			stream := client.Responses.NewStreaming(ctx, respond("slow", suite.Question))
			for stream.Next() {
				if stream.Current().Type == "response.output_text.delta" {
					return stream.Close()
				}
			}
			return errors.Join(stream.Err(), errors.New("the stream had no text, so it was not aborted"))
		}},
	}
	for name, kind := range suite.Once {
		cases = append(cases, suite.Case{Name: name, Do: func() error { return hasResponse(respond(kind, suite.Question), suite.Recovered) }})
	}
	for name, kind := range suite.Cuts {
		cases = append(cases, suite.Case{Name: name, Do: func() error {
			asked := respond(kind, suite.Question)
			asked.Tools = responseTools()
			last, err := readResponse(asked)
			if err == nil && last.Type != "response.failed" {
				return fmt.Errorf("it ends with %q", last.Type)
			}
			return nil
		}})
	}
	return cases
}

func readResponse(asked responses.ResponseNewParams) (responses.ResponseStreamEventUnion, error) {
	stream := client.Responses.NewStreaming(ctx, asked)
	var last responses.ResponseStreamEventUnion
	for stream.Next() {
		last = stream.Current()
	}
	return last, stream.Err()
}

func responseToolsCase() error {
	asked := respond("large", suite.BothCities)
	asked.Tools = responseTools()
	said, err := client.Responses.New(ctx, asked)
	if err != nil {
		return err
	}
	results := responses.ResponseInputParam{}
	for _, item := range said.Output {
		if item.Type == "function_call" {
			call := item.AsFunctionCall()
			said := responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name)
			asked.Input.OfInputItemList = append(asked.Input.OfInputItemList, said)
			results = append(results, resultOf(call))
		}
	}
	if len(results) != 2 {
		return fmt.Errorf("%d calls", len(results))
	}
	asked.Input.OfInputItemList = append(asked.Input.OfInputItemList, results...)
	return hasResponse(asked, "sunny in Paris", "sunny in Rome")
}

func resultOf(call responses.ResponseFunctionToolCall) responses.ResponseInputItemUnionParam {
	result := responses.ResponseInputItemParamOfFunctionCallOutput(suite.Weather(call.Arguments))
	result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
	return result
}

func isStatus(err error, status int) error {
	var told *openai.Error
	if errors.As(err, &told) && told.StatusCode == status {
		return nil
	}
	return fmt.Errorf("it raised %v", err)
}
