package planfile

import (
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Site identifies a call site in a form that is the same in each run of a program.
type Site struct {
	Name   string   `toml:"name"`   // for people
	Frames []string `toml:"frames"` // innermost first: "module+0x12", in scripts "file:12"; or "size 4096" where sizes identify call sites
}

// keyOfSite identifies a site.
func (s *Site) keyOfSite() string { return strings.Join(s.Frames, "\n") }

// SiteOfRecord returns the call site that a SITE or TAG record names, and its tag. ok is false if another run could not have
// that site.
func SiteOfRecord(r *wire.Record) (s Site, tag allocator.Tag, ok bool) {
	switch {
	case r.Kind == wire.KindSite:
		s.Frames = distinctAddresses(r.Payload)
	case r.Kind == wire.KindTag && r.AsTag().Mode() == wire.TagsSize:
		s.Frames = []string{"size " + strconv.FormatUint(r.AsTag().Value(), 10)}
	}
	s.Name = callsite.TagNameOf(r)
	return s, allocator.Tag(r.DefinedTag()), len(s.Frames) > 0
}

// framesMax is how many frames identify a call site.
const framesMax = 64

// distinctAddresses returns the addresses of a SITE record, each once: inlined functions have the address of their caller.
func distinctAddresses(payload []byte) (list []string) {
	for f := range wire.ParseSite(payload) {
		place := callsite.BaseName(f.Module) + "+0x" + strconv.FormatUint(f.Offset, 16)
		if !f.HasOffset {
			place = callsite.BaseName(f.File) + ":" + strconv.FormatUint(f.Line, 10)
		}
		place = callsite.CleanText([]byte(place))
		if n := len(list); n == framesMax {
			break
		} else if n == 0 || list[n-1] != place {
			list = append(list, place)
		}
	}
	return list
}
