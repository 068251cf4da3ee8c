package units

import (
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
