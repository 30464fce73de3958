// Package suite has what every program of this folder is given, and how it says what came of its cases.
package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// What the clients suite sets.
var (
	Origin    = os.Getenv("TRIWIRE_URL")
	Base      = Origin + "/v1/"
	Key       = os.Getenv("TRIWIRE_KEY")
	Wire      = os.Getenv("TRIWIRE_WIRE")
	modelWire = os.Getenv("TRIWIRE_MODEL_WIRE")
)

const (
	Question = "What is the capital of France?"
	Answer   = `You said: "What is the capital of France?"`
	// The simulator calls what it is told to, with these arguments.
	BothCities = `call get_weather {"city":"Paris"} and get_weather {"city":"Rome"}`
	Recovered  = "That is the answer."
	// A red dot of 1 x 1.
	Image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)

// Once has the models that fail once, by how; Cuts those that break off.
var (
	Once = map[string]string{"429": "busy", "529": "overloaded", "500": "broken"}
	Cuts = map[string]string{"cut in text": "cut-text", "cut in a call": "cut-call"}
)

// Schema is that of the arguments of get_weather.
var Schema = map[string]any{
	"type":                 "object",
	"properties":           map[string]any{"city": map[string]any{"type": "string"}},
	"required":             []string{"city"},
	"additionalProperties": false,
}

// Model is the catalog id of a model that behaves so.
func Model(kind string) string { return kind + "-" + modelWire }

// Weather answers a call of get_weather.
func Weather(arguments string) string {
	var asked struct{ City string }
	if err := json.Unmarshal([]byte(arguments), &asked); err != nil {
		return err.Error()
	}
	return "sunny in " + asked.City
}

// Has is an error unless all parts are in the text.
func Has(text string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("%q is not in %q", part, text)
		}
	}
	return nil
}

// Case is one thing that a client is asked to do.
type Case struct {
	Name string
	Do   func() error
}

// Run does them one after the other, each line of output a case.
func Run(cases []Case) {
	for _, one := range cases {
		said := map[string]string{"case": one.Name}
		if err := one.Do(); err != nil {
			said["failed"] = err.Error()
		}
		line, _ := json.Marshal(said)
		fmt.Println("CASE " + string(line))
	}
}
