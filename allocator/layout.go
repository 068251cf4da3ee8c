package allocator

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Layout is a plan of what a program allocates in one period: each buffer has its place in an arena, a slab of its own.
// It is a prediction, and is not trusted: buffers may be placed over each other, since their lives may differ.
type Layout struct {
	Arenas []Arena
	Places []Place // in the order of the period
}

// Arena is the slab that serves one class, the first that makes a request of one of its places. Without an alignment it
// serves requests that get no sub-allocations, with blocks: places at the same offset share one, as large as the largest.
type Arena struct {
	Size, Align uint64 // bytes
	Bound       uint64 // bytes: none is smaller, as far as is known; the policy does not look at it
}

// Place is where one request of the period goes: the nth place of its call site serves the nth request there.
type Place struct {
	Arena  int // among Layout.Arenas
	Tag    Tag // of the call site
	Size   uint64
	Offset uint64 // bytes
}

// ArenasMax is how many arenas a layout has at most.
const (
	ArenasMax = 16
	// SettledAfter is how many periods after the first of a plan nothing is left of what was there before.
	SettledAfter = unneeded + 2
	placesMax    = 1 << 16
	arenaMax     = 1 << 48 // bytes
)

// Check says what is wrong with a layout.
func (l *Layout) Check() error {
	if len(l.Arenas) > ArenasMax || len(l.Places) > placesMax {
		return fmt.Errorf("plan: %d arenas and %d places: want at most %d and %d", len(l.Arenas), len(l.Places), ArenasMax, placesMax)
	}
	for i, a := range l.Arenas {
		if a.Align&(a.Align-1) != 0 || a.Align > coarsest {
			return fmt.Errorf("plan: arena %d: alignment %d: want 0 or a power of two up to %d", i+1, a.Align, coarsest)
		}
		if a.Size == 0 || a.Size > arenaMax || a.Size%max(a.Align, 1) != 0 {
			return fmt.Errorf("plan: arena %d: size %d: want a multiple of %d up to %d", i+1, a.Size, max(a.Align, 1), uint64(arenaMax))
		}
	}
	for i, place := range l.Places {
		if place.Arena < 0 || place.Arena >= len(l.Arenas) {
			return fmt.Errorf("plan: place %d: there is no arena %d", i+1, place.Arena+1)
		}
		a := &l.Arenas[place.Arena]
		if place.Size == 0 || place.Size > a.Size || place.Offset > a.Size-place.Size || place.Offset%max(a.Align, 1) != 0 {
			return fmt.Errorf("plan: place %d: %d bytes at %d: want them within the arena's %d, at a multiple of %d",
				i+1, place.Size, place.Offset, a.Size, max(a.Align, 1))
		}
	}
	return l.checkBlocks()
}

// checkBlocks says which arena its blocks are too large for.
func (l *Layout) checkBlocks() error {
	type start struct {
		arena  int
		offset uint64
	}
	blocks, sums := map[start]uint64{}, make([]uint64, len(l.Arenas))
	for i := range l.Places {
		at := &l.Places[i]
		here := start{at.Arena, at.Offset}
		if was := blocks[here]; l.Arenas[at.Arena].Align == 0 && at.Size > was {
			blocks[here] = at.Size
			sums[at.Arena] += at.Size - was
		}
	}
	for i, sum := range sums {
		if sum > l.Arenas[i].Size {
			return fmt.Errorf("plan: arena %d: blocks of %d bytes: want at most its size, %d", i+1, sum, l.Arenas[i].Size)
		}
	}
	return nil
}

// Departure says why a plan did not serve a request.
type Departure uint8

// The departures, from what is looked at first.
const (
	NoLayout     Departure = iota // none is there yet
	OtherSite                     // the plan has no place for the call site
	OtherClass                    // it has, in another class
	OtherSize                     // none of the site's next places has the size
	OtherOrder                    // one that comes much later has
	RangeInUse                    // another buffer is there
	RangeCooling                  // commands still use what was there
	NoArena                       // there is no memory for the arena
	departures
)

// route returns the same as events have it.
func (d Departure) route() wire.Route { return wire.RouteNoPlanYet + wire.Route(d) }

// String returns the words for tables.
func (d Departure) String() string { return d.route().String() }

// planner is what a policy with an arena knows of plans.
type planner struct {
	present *plan // nil: none
	next    *plan // replaces it when its first place is asked for
	allowance
}

func newPlanner(present *plan) *planner {
	return &planner{present: present, allowance: allowance{fiftieths: 1}}
}

// plan is a layout in force.
type plan struct {
	arenas   []arena
	sites    map[Tag][]*site
	first    *site           // of the first place
	size     uint64          // that is asked for there
	lap      uint32          // counts the periods after which sites begin again
	departed bool            // in this period
	periods  uint64          // that began
	starts   [unneeded]int64 // of the latest, in ns
}

// site is a call site with its places in one arena.
type site struct {
	arena  *arena
	places []spot
	next   int // the place of its next request
	lap    uint32
}

type spot struct {
	size uint64 // granted
	at   int    // the start of its range, or the number of its block
}

// arena is a slab, or the absence of one, with what lies there; or blocks.
type arena struct {
	*carved
	placed   *carve.Placed
	whole    bool           // blocks
	blocks   []planBlock    // in the order of their first places
	numbers  map[uint64]int // of blocks, by offset
	size     uint64
	class    Class // 0: no request has been served
	alone    bool  // what the base policy had of the class went
	wait     int   // requests until the driver is asked again, which refused
	patience int
}

// planBlock is one that a plan keeps for some of its places.
type planBlock struct {
	size uint64
	is   Block // 0, or gone: to be created
}

// newPlan returns a layout that was checked, ready for use.
func newPlan(l *Layout) *plan {
	s := &plan{sites: map[Tag][]*site{}, size: l.Places[0].Size}
	offsets := make([][]uint64, len(l.Arenas))
	for _, place := range l.Places {
		offsets[place.Arena] = append(offsets[place.Arena], place.Offset)
	}
	for i, a := range l.Arenas {
		placed := carve.NewPlaced(max(a.Align, 1), offsets[i])
		s.arenas = append(s.arenas, arena{
			carved: &carved{carver: placed, align: a.Align}, placed: placed, whole: a.Align == 0, numbers: map[uint64]int{},
			size: a.Size, patience: leastPatience,
		})
	}
	for _, place := range l.Places {
		here := s.site(&s.arenas[place.Arena], place.Tag)
		at := spot{here.arena.placed.Round(place.Size), here.arena.placed.Start(place.Offset)}
		if here.arena.whole {
			at.at = here.arena.blockAt(&place)
		}
		here.places = append(here.places, at)
		if s.first == nil {
			s.first = here
		}
	}
	return s
}

// blockAt returns the number of the block for a place.
func (a *arena) blockAt(place *Place) int {
	number, known := a.numbers[place.Offset]
	if !known {
		number = len(a.blocks)
		a.numbers[place.Offset] = number
		a.blocks = append(a.blocks, planBlock{})
	}
	a.blocks[number].size = max(a.blocks[number].size, place.Size)
	return number
}

// site returns the places of a call site in an arena.
func (s *plan) site(a *arena, tag Tag) *site {
	for _, here := range s.sites[tag] {
		if here.arena == a {
			return here
		}
	}
	here := &site{arena: a}
	s.sites[tag] = append(s.sites[tag], here)
	return here
}

// Install gives the policy a plan, which replaces the present one when the program makes the first request of the
// period. A layout without places ends the present one at once. The error says what is wrong with the layout, or that
// the policy takes none; nothing changes then.
func (p *Pool) Install(l Layout, out []Eviction) ([]Eviction, error) {
	out = p.flush(out)
	if p.planner == nil {
		return out, fmt.Errorf("policy %s takes no plan: want arena", p.Name())
	}
	if err := l.Check(); err != nil {
		return out, err
	}
	p.planner.next = nil
	if len(l.Places) == 0 {
		p.endPlan()
		return p.evictStale(out), nil
	}
	p.planner.next = newPlan(&l)
	return out, nil
}
