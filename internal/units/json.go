package units

import (
	"bytes"
	"encoding/json"
	"io"
)

// WriteJSON writes a value for scripts: indented, with < and > of C++ names as they are. The error is the writer's.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Joined is one JSON object with the members of several values. Each value must be an object by itself.
type Joined []any

// MarshalJSON implements json.Marshaler.
func (j Joined) MarshalJSON() ([]byte, error) {
	all := []byte{'{'}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // as WriteJSON, which does not undo it
	for _, value := range j {
		b.Reset()
		if err := encoder.Encode(value); err != nil {
			return nil, err
		}
		members := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(b.Bytes()), []byte{'{'}), []byte{'}'})
		if len(members) > 0 && len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, members...)
	}
	return append(all, '}'), nil
}
