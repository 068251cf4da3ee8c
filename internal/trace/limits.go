package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Limits are the values of allocator limits by name, as the allocator takes them. In JSON what is a number is one, and
// the rest are strings; version 1 had numbers only.
type Limits map[string]string

// MarshalJSON implements json.Marshaler.
func (l Limits) MarshalJSON() ([]byte, error) {
	values := make(map[string]any, len(l))
	for name, text := range l {
		values[name] = text
		if isNumber(text) {
			values[name] = json.Number(text)
		}
	}
	return json.Marshal(values)
}

// isNumber reports whether a text is a number in JSON, too.
func isNumber(text string) bool {
	value, err := strconv.ParseFloat(text, 64)
	return err == nil && !math.IsInf(value, 0) && json.Valid([]byte(text))
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	*l = make(Limits, len(values))
	for name, value := range values {
		switch v := value.(type) {
		case string:
			(*l)[name] = v
		case float64:
			(*l)[name] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			return fmt.Errorf("limit %s is neither a number nor a text", name)
		}
	}
	return nil
}
