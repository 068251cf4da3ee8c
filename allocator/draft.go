package allocator

import (
	"fmt"
	"strconv"
	"strings"
)

// EncodePieces writes a layout in pieces of at most that many bytes, for Draft.ReadPiece: "new", the arenas, the places in their
// order, and "end" with the number of places. Numbers are hexadecimal.
//
//	arenas SIZE:ALIGN:BOUND,...
//	places ARENA:TAG:SIZE:OFFSET,...
func (l *Layout) EncodePieces(most int) []string {
	texts := []string{"new"}
	add := func(verb string, numbers ...uint64) {
		item := make([]string, len(numbers))
		for i, n := range numbers {
			item[i] = strconv.FormatUint(n, 16)
		}
		last := &texts[len(texts)-1]
		if longer := *last + "," + strings.Join(item, ":"); strings.HasPrefix(*last, verb) && len(longer) <= most {
			*last = longer
			return
		}
		texts = append(texts, verb+strings.Join(item, ":"))
	}
	for _, a := range l.Arenas {
		add("arenas ", a.Size, a.Align, a.Bound)
	}
	for _, p := range l.Places {
		add("places ", uint64(p.Arena), uint64(p.Tag), p.Size, p.Offset)
	}
	return append(texts, "end "+strconv.FormatUint(uint64(len(l.Places)), 16))
}

// Draft is a layout that is still being received. The zero Draft waits for the first piece.
type Draft struct {
	layout Layout
	begun  bool
}

// ReadPiece reads the next piece. With the last piece it returns the layout. After an error the draft waits for a first
// piece.
func (d *Draft) ReadPiece(text string) (l *Layout, err error) {
	verb, rest, _ := strings.Cut(text, " ")
	switch {
	case verb == "new":
		*d = Draft{begun: true}
	case !d.begun:
		err = fmt.Errorf("plan: %.20q without a beginning", text)
	case verb == "arenas":
		err = d.readListItems(rest, arenasEach, func(n []uint64) {
			d.layout.Arenas = append(d.layout.Arenas, Arena{Size: n[0], Align: n[1], Bound: n[2]})
		})
	case verb == "places":
		err = d.readListItems(rest, placesEach, func(n []uint64) {
			d.layout.Places = append(d.layout.Places, Place{Arena: int(n[0]), Tag: Tag(n[1]), Size: n[2], Offset: n[3]})
		})
	case verb == "end":
		if rest != strconv.FormatUint(uint64(len(d.layout.Places)), 16) {
			err = fmt.Errorf("plan: %d places came, and %.20q were sent", len(d.layout.Places), rest)
			break
		}
		complete := d.layout
		*d = Draft{}
		return &complete, nil
	default:
		err = fmt.Errorf("plan: unknown piece %.20q", verb)
	}
	if err != nil {
		*d = Draft{}
	}
	return nil, err
}

// The largest numbers that an arena and a place may have.
var (
	arenasEach = []uint64{arenaMax, coarsest, arenaMax}
	placesEach = []uint64{ArenasMax, 1<<32 - 1, arenaMax, arenaMax}
)

// readListItems calls add for each item, a list of numbers; most has the largest value of each number.
func (d *Draft) readListItems(text string, most []uint64, add func([]uint64)) error {
	for item := range strings.SplitSeq(text, ",") {
		fields := strings.Split(item, ":")
		if len(fields) != len(most) {
			return fmt.Errorf("plan: %.40q: want %d numbers", item, len(most))
		}
		var numbers [4]uint64
		for i, field := range fields {
			n, err := strconv.ParseUint(field, 16, 64)
			if err != nil || n > most[i] {
				return fmt.Errorf("plan: %.40q: %.20q is no number up to %x", item, field, most[i])
			}
			numbers[i] = n
		}
		add(numbers[:len(most)])
		if len(d.layout.Places) > placesMax || len(d.layout.Arenas) > ArenasMax {
			return fmt.Errorf("plan: want at most %d arenas and %d places", ArenasMax, placesMax)
		}
	}
	return nil
}
