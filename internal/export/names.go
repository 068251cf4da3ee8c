package export

import (
	"bytes"
	"encoding/json"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
)

// clean makes text of a target safe to print. Perfetto gives up on any control character, DEL included.
func clean(text string) string { return plain.Clean(text) }

// count writes a number of things.
func count(n uint64, thing string) string { return plain.Count(n, thing) }

// quote writes text as a JSON string. It leaves < and > of C++ names readable.
func quote(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(clean(text)); err != nil {
		return `""` // cannot happen: a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}
