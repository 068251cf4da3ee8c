package allocator

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Layout says where the buffers of one period of a program go: each has its place in an arena, which is a slab of its
// own. A layout is a prediction, and the policy does not trust it: places may overlap, and two buffers that were
// expected to live one after the other may live at once.
type Layout struct {
	Arenas []Arena
	Places []Place // in the order of the period
}

// Arena is a slab that serves one class: the class of the first request for one of its places. An arena without an
// alignment consists of blocks instead, for requests that cannot get sub-allocations. Places at the same offset then
// share a block, which is as large as the largest of them.
type Arena struct {
	Size, Align uint64 // bytes
	Bound       uint64 // bytes: a lower bound for an arena of these buffers; the policy does not use it
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
	// SettledAfter is how many periods after the first of a layout the pool holds no block from before it.
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

// checkBlocks returns an error if the blocks of an arena are together larger than the arena.
func (l *Layout) checkBlocks() error {
	type start struct {
		arena  int
		offset uint64
	}
	blocks, sums := map[start]uint64{}, make([]uint64, len(l.Arenas))
	for i := range l.Places {
		place := &l.Places[i]
		block := start{place.Arena, place.Offset}
		if was := blocks[block]; l.Arenas[place.Arena].Align == 0 && place.Size > was {
			blocks[block] = place.Size
			sums[place.Arena] += place.Size - was
		}
	}
	for i, sum := range sums {
		if sum > l.Arenas[i].Size {
			return fmt.Errorf("plan: arena %d: blocks of %d bytes: want at most its size, %d", i+1, sum, l.Arenas[i].Size)
		}
	}
	return nil
}

// Departure says why a layout did not serve a request.
type Departure uint8

// The departures, in the order in which they are checked.
const (
	NoLayout     Departure = iota // there is no layout yet
	OtherSite                     // the layout has no place for the call site
	OtherClass                    // it has places for the site, in another class
	OtherSize                     // none of the site's next places has the size
	OtherOrder                    // only a much later place of the site has the size
	RangeInUse                    // another buffer is there
	RangeCooling                  // commands still use the buffer that was there
	NoArena                       // the arena does not exist, and there is no memory for it
	departures
)

// recordedRoute returns the departure as events record it.
func (d Departure) recordedRoute() wire.Route { return wire.RouteNoPlanYet + wire.Route(d) }

// String returns the words for the departure in tables.
func (d Departure) String() string { return d.recordedRoute().String() }

// layouts holds the current layout of a policy that takes layouts, and the next one.
type layouts struct {
	current *activeLayout // nil: none
	next    *activeLayout // replaces current when its first place is requested
	allowance
}

func newLayouts(current *activeLayout) *layouts {
	return &layouts{current: current, allowance: allowance{fiftieths: 1}}
}

// currentArenas returns the arenas of the current layout.
func (l *layouts) currentArenas() []activeArena {
	if l == nil || l.current == nil {
		return nil
	}
	return l.current.arenas
}

// activeLayout is a layout in force, or the next one. Each of its sites takes requests in order, independently of the
// others. If a period departed from the layout, all sites begin again with the next period.
type activeLayout struct {
	arenas   []activeArena
	sites    map[Tag][]*site
	first    *site           // the site of the first place
	size     uint64          // the size that is requested there
	restarts uint32          // how often all sites began again
	departed bool            // a request of this period departed
	periods  uint64          // that have begun
	starts   [unneeded]int64 // when the latest periods began, in ns
}

// site is a call site with its places in one arena.
type site struct {
	arena    *activeArena
	places   []sitePlace
	next     int    // index of the place for the next request
	restarts uint32 // activeLayout.restarts when the site last began
}

// sitePlace is a place of a site.
type sitePlace struct {
	size   uint64 // granted
	number int    // of the offset in activeArena.placed, or of the block in activeArena.blocks
}

// activeArena is an arena of an active layout: a slab, which may not exist yet, or blocks.
type activeArena struct {
	*carved
	placed   *carve.Placed
	whole    bool           // the arena consists of blocks
	blocks   []arenaBlock   // in the order of their first places
	numbers  map[uint64]int // of blocks, by offset
	size     uint64
	class    Class // 0: it has served no request
	cleared  bool  // the base policy has given up its blocks of the class
	wait     int   // requests since the driver refused the slab
	patience int   // requests after which the driver is asked again
}

// arenaBlock is a block that serves some of the places of an arena.
type arenaBlock struct {
	size  uint64
	block Block // 0, or no longer known: the block must be created
}

// newActiveLayout prepares a checked layout for use.
func newActiveLayout(l *Layout) *activeLayout {
	active := &activeLayout{sites: map[Tag][]*site{}, size: l.Places[0].Size}
	offsets := make([][]uint64, len(l.Arenas))
	for _, place := range l.Places {
		offsets[place.Arena] = append(offsets[place.Arena], place.Offset)
	}
	for i, a := range l.Arenas {
		placed := carve.NewPlaced(max(a.Align, 1), offsets[i])
		active.arenas = append(active.arenas, activeArena{
			carved: &carved{carver: placed, align: a.Align}, placed: placed, whole: a.Align == 0, numbers: map[uint64]int{},
			size: a.Size, patience: leastPatience,
		})
	}
	for _, place := range l.Places {
		s := active.siteInArena(&active.arenas[place.Arena], place.Tag)
		number := s.arena.placed.StartIndex(place.Offset)
		if s.arena.whole {
			number = s.arena.blockForPlace(&place)
		}
		s.places = append(s.places, sitePlace{s.arena.placed.RoundUp(place.Size), number})
		if active.first == nil {
			active.first = s
		}
	}
	return active
}

// blockForPlace returns the number of the block for a place, and makes the block large enough.
func (a *activeArena) blockForPlace(place *Place) int {
	number, known := a.numbers[place.Offset]
	if !known {
		number = len(a.blocks)
		a.numbers[place.Offset] = number
		a.blocks = append(a.blocks, arenaBlock{})
	}
	a.blocks[number].size = max(a.blocks[number].size, place.Size)
	return number
}

// siteInArena returns a call site with its places in an arena.
func (l *activeLayout) siteInArena(a *activeArena, tag Tag) *site {
	for _, s := range l.sites[tag] {
		if s.arena == a {
			return s
		}
	}
	s := &site{arena: a}
	l.sites[tag] = append(l.sites[tag], s)
	return s
}

// InstallLayout gives the policy a layout. The layout replaces the current one when the program makes the first request of a
// period; a layout without places ends the current one at once. If the layout is invalid, or the policy takes no
// layouts, InstallLayout returns an error and changes nothing.
func (p *Pool) InstallLayout(l Layout, out []Eviction) ([]Eviction, error) {
	out = p.evictDoomed(out)
	if p.layouts == nil {
		return out, fmt.Errorf("policy %s takes no plan: want arena", p.PolicyName())
	}
	if err := l.Check(); err != nil {
		return out, err
	}
	p.layouts.next = nil
	if len(l.Places) == 0 {
		p.endLayout()
		return p.evictStale(out), nil
	}
	p.layouts.next = newActiveLayout(&l)
	return out, nil
}
