package planfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/document"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// TextMax bounds the text of a plan, in bytes.
const TextMax = 8 << 20

// version is the version of the file format.
const version = 1

const head = `# Where this program's buffers go: gpumemtop --plan FILE PROGRAM
# Sizes, offsets and alignments are bytes. A place serves the requests of its call site in their order, once in each
# iteration. A lifetime counts requests of the iteration, from the buffer's own on until its memory is free again.
# An arena is one block of the driver; with alignment 0 it is one for each offset, for buffers that share no block.
`

// Write writes a plan.
func (p *Plan) Write(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%sversion = %d\nprogram = %s\nbuild_id = %s\ntags = %s\nrecordings = %d\n",
		head, version, quoteTOML(p.Program), quoteTOML(p.Build), quoteTOML(p.Tags), p.Recordings)
	for _, a := range p.Arenas {
		fmt.Fprintf(&b, "\n[[arena]] # %s, %s\nsize = %d\nalignment = %d\nlower_bound = %d\n",
			units.FormatLong(a.Size), sizeBoundText(&a), a.Size, a.Align, a.Bound)
	}
	for i := range p.Sites {
		s := &p.Sites[i]
		frames := make([]string, len(s.Frames))
		for k := range frames {
			frames[k] = quoteTOML(s.Frames[k])
		}
		fmt.Fprintf(&b, "\n[[site]]\nname = %s\nframes = [%s]\nplaces = [\n", quoteTOML(s.Name), strings.Join(frames, ", "))
		for _, place := range s.Places {
			fmt.Fprintf(&b, "  { %srequest = %d, arena = %d, size = %d, offset = %d, lifetime = %d },\n",
				phaseFieldText(place.Phase), place.Request, place.Arena, place.Size, place.Offset, place.Life)
		}
		b.WriteString("]\n")
	}
	for _, o := range p.Outside {
		fmt.Fprintf(&b, "\n[[outside]]\nname = %s\n", quoteTOML(o.Name))
		if o.Request > 0 {
			fmt.Fprintf(&b, "phase = %d\nrequest = %d\nsize = %d\n", o.Phase, o.Request, o.Size)
		}
		fmt.Fprintf(&b, "why = %s\n", quoteTOML(o.Why))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func sizeBoundText(a *Arena) string {
	if a.Size == a.Bound {
		return "the smallest possible"
	}
	return "none is smaller than " + units.FormatLong(a.Bound)
}

func phaseFieldText(phase int) string {
	if phase == 1 {
		return ""
	}
	return fmt.Sprintf("phase = %d, ", phase)
}

// quoteTOML writes a TOML string. units.Clean replaces the characters that TOML and strconv escape differently.
func quoteTOML(text string) string { return strconv.Quote(units.Clean(text)) }

// ParsePlan reads a plan. Errors are one line.
func ParsePlan(text string) (*Plan, error) {
	if len(text) > TextMax {
		return nil, fmt.Errorf("longer than %s: want a plan", units.FormatLong(TextMax))
	}
	p := &Plan{}
	_, err := document.DecodeTOML(text, p)
	var unknown *document.UnknownKey
	if err != nil && !errors.As(err, &unknown) {
		return nil, explainTOMLError(err)
	}
	if p.Version != version {
		return nil, fmt.Errorf("version %d: want %d, as 'gpumemtop advise --write' of this version writes it", p.Version, version)
	}
	if unknown != nil {
		return nil, unknown
	}
	p.fillInDefaults()
	return p, p.checkPlan()
}

// fillInDefaults fills in what a file may leave out: phase 1, and arena 1.
func (p *Plan) fillInDefaults() {
	for i := range p.Sites {
		for k := range p.Sites[i].Places {
			place := &p.Sites[i].Places[k]
			place.Phase, place.Arena = cmp.Or(place.Phase, 1), cmp.Or(place.Arena, 1)
		}
	}
	for i := range p.Outside {
		p.Outside[i].Phase = cmp.Or(p.Outside[i].Phase, 1)
	}
}

// explainTOMLError says in one line where a text is not TOML, or not a plan.
func explainTOMLError(err error) error {
	const want = ": want a plan, as 'gpumemtop advise --write' writes it"
	var bad *document.Error
	if errors.As(err, &bad) {
		return fmt.Errorf("line %d: %s%s", bad.Line, strings.TrimSuffix(bad.Text, "."), want)
	}
	return errors.New(err.Error() + want)
}

// checkPlan reports invalid values.
func (p *Plan) checkPlan() error {
	seen := map[string]bool{}
	for i := range p.Sites {
		s := &p.Sites[i]
		switch {
		case len(s.Frames) == 0 || len(s.Frames) > framesMax:
			return fmt.Errorf("site %d has %d frames: want 1 to %d", i+1, len(s.Frames), framesMax)
		case seen[s.keyOfSite()]:
			return fmt.Errorf("site %d has the frames of another: want each once", i+1)
		}
		seen[s.keyOfSite()] = true
		last := sitePlace{}
		for k, place := range s.Places {
			if place.Phase < 1 || place.Request < 1 || place.Arena < 1 || place.Arena > len(p.Arenas) {
				return fmt.Errorf("site %d, place %d: phase %d, request %d, arena %d: want numbers from 1, and an arena that there is",
					i+1, k+1, place.Phase, place.Request, place.Arena)
			}
			current := sitePlace{place, i}
			if k > 0 && comparePlaces(last, current) >= 0 {
				return fmt.Errorf("site %d, place %d: request %d comes behind request %d: want them in order", i+1, k+1, place.Request, last.Request)
			}
			last = current
		}
	}
	for i, a := range p.Arenas {
		if a.Bound > a.Size {
			return fmt.Errorf("arena %d: lower_bound %d is above its size %d", i+1, a.Bound, a.Size)
		}
	}
	whole := p.layoutBySiteNumber()
	if len(whole.Places) == 0 {
		return errors.New("no place: want a [[site]] with places")
	}
	return whole.Check()
}

// sitePlace is a place with the index of its site.
type sitePlace struct {
	Place
	site int
}

func comparePlaces(a, b sitePlace) int {
	return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Request, b.Request))
}

// placesByRequest returns the places in the order of their requests.
func (p *Plan) placesByRequest() (list []sitePlace) {
	for i := range p.Sites {
		for _, place := range p.Sites[i].Places {
			list = append(list, sitePlace{place, i})
		}
	}
	slices.SortStableFunc(list, comparePlaces)
	return list
}
