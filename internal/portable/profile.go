// Package portable says whether a recorded program would run on a device that is not in this machine, from the device's
// limits. It reads no clock.
package portable

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/document"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Profile is the limits of a device. A number that is 0 is unknown, and so is Images if it is nil.
type Profile struct {
	Name     string `json:"name"`
	Source   string `json:"source"`                        // where the figures are from
	Memory   uint64 `json:"global_memory,omitempty"`       // bytes, CL_DEVICE_GLOBAL_MEM_SIZE
	Largest  uint64 `json:"largest_buffer,omitempty"`      // bytes, CL_DEVICE_MAX_MEM_ALLOC_SIZE
	Align    uint64 `json:"base_alignment_bits,omitempty"` // CL_DEVICE_MEM_BASE_ADDR_ALIGN
	Images   *bool  `json:"images,omitempty"`              // CL_DEVICE_IMAGE_SUPPORT
	Width    uint64 `json:"image_width,omitempty"`         // pixels, CL_DEVICE_IMAGE2D_MAX_WIDTH
	Height   uint64 `json:"image_height,omitempty"`        // pixels, CL_DEVICE_IMAGE2D_MAX_HEIGHT
	Constant uint64 `json:"constant_buffer,omitempty"`     // bytes, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE
}

// ProfileMax bounds the text of a profile, bytes.
const ProfileMax = 64 << 10

// alignMax bounds an alignment, in bits: no device comes near.
const alignMax = 1 << 30

// field is a key of the file.
type field struct {
	key    string
	text   func(*Profile) *string
	number func(*Profile) *uint64
	size   bool // a text such as "4GiB" is accepted, too
}

var fields = []field{
	{key: "name", text: func(p *Profile) *string { return &p.Name }},
	{key: "source", text: func(p *Profile) *string { return &p.Source }},
	{key: "global_memory", number: func(p *Profile) *uint64 { return &p.Memory }, size: true},
	{key: "largest_buffer", number: func(p *Profile) *uint64 { return &p.Largest }, size: true},
	{key: "base_alignment_bits", number: func(p *Profile) *uint64 { return &p.Align }},
	{key: "images"},
	{key: "image_width", number: func(p *Profile) *uint64 { return &p.Width }},
	{key: "image_height", number: func(p *Profile) *uint64 { return &p.Height }},
	{key: "constant_buffer", number: func(p *Profile) *uint64 { return &p.Constant }, size: true},
}

// ProfileKeys are the keys that a profile can have.
func ProfileKeys() (keys []string) {
	for i := range fields {
		keys = append(keys, fields[i].key)
	}
	return keys
}

// UnknownKey is the error for a key of a profile that has no meaning.
type UnknownKey struct{ Key string }

// Error implements error.
func (e *UnknownKey) Error() string { return "unknown key " + units.Clean(strconv.Quote(e.Key)) }

// ParseProfile reads a profile in TOML. Errors are one line, or an UnknownKey.
func ParseProfile(text string) (*Profile, error) {
	if len(text) > ProfileMax {
		return nil, fmt.Errorf("longer than %d bytes: want a device's profile", ProfileMax)
	}
	var all map[string]any
	if _, err := document.DecodeTOML(text, &all); err != nil {
		return nil, fmt.Errorf("%s: want TOML, with lines such as global_memory = \"8GiB\"", strings.TrimSuffix(err.Error(), "."))
	}
	p := &Profile{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		index := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if index < 0 {
			return nil, &UnknownKey{key}
		}
		if err := fields[index].setField(p, all[key]); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return p, p.checkProfile()
}

// setField sets a value.
func (f *field) setField(p *Profile, value any) error {
	text, isText := value.(string)
	number, isNumber := value.(int64)
	switch {
	case f.text != nil:
		if !isText {
			return errors.New("want a text in quotes")
		}
		*f.text(p) = units.Clean(text)
	case f.number == nil:
		yes, ok := value.(bool)
		if !ok {
			return errors.New("want true or false")
		}
		p.Images = &yes
	case isNumber && number > 0:
		*f.number(p) = uint64(number)
	case f.size && isText:
		n, err := units.ParseSize(text)
		if err != nil {
			return err
		}
		if n == 0 {
			return errors.New("is 0: leave the key out where the figure is not known")
		}
		*f.number(p) = n
	case f.size:
		return errors.New("want a size such as \"4GiB\", or bytes, above 0; leave the key out where the figure is not known")
	default:
		return errors.New("want a whole number above 0; leave the key out where the figure is not known")
	}
	return nil
}

func (p *Profile) checkProfile() error {
	switch {
	case p.Name == "":
		return errors.New("no name: want name = \"what the device is called\"")
	case p.Align > alignMax || p.Align&(p.Align-1) != 0 || p.Align > 0 && p.Align < 8:
		return fmt.Errorf("base_alignment_bits: bad value %d: want a power of two of at least 8, as clinfo shows it", p.Align)
	case p.Memory > 0 && p.Largest > p.Memory:
		return fmt.Errorf("largest_buffer is above global_memory: %d of %d bytes", p.Largest, p.Memory)
	}
	return nil
}

// Write writes a profile that Parse reads.
func (p *Profile) Write(w io.Writer) error {
	var b strings.Builder
	for i := range fields {
		f := &fields[i]
		switch {
		case f.text != nil:
			fmt.Fprintf(&b, "%s = %s\n", f.key, quoteTOML(*f.text(p)))
		case f.number == nil && p.Images != nil:
			fmt.Fprintf(&b, "%s = %v\n", f.key, *p.Images)
		case f.number != nil && *f.number(p) > 0:
			fmt.Fprintf(&b, "%s = %d\n", f.key, *f.number(p))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// quoteTOML writes a text of TOML.
func quoteTOML(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(units.Clean(text)) + `"`
}

//go:embed devices/*.toml
var devices embed.FS

// ProfileNames returns the devices whose profiles are built in, sorted.
func ProfileNames() (names []string) {
	entries, _ := devices.ReadDir("devices") // it is there: go:embed
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".toml"))
	}
	return names
}

// BuiltInProfile returns a built-in profile; ok is false if there is none with that name.
func BuiltInProfile(name string) (p *Profile, ok bool) {
	if !slices.Contains(ProfileNames(), name) {
		return nil, false
	}
	text, err := devices.ReadFile("devices/" + name + ".toml")
	if err != nil {
		return nil, false
	}
	p, err = ParseProfile(string(text))
	return p, err == nil
}
