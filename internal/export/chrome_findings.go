package export

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// mistakeKey tells findings apart in a trace.
type mistakeKey struct {
	kind             wire.Diag
	function, kernel string
	tag              *tag
}

// mistake writes an instant where a mistake is made for the first time; the others would hide everything else.
func (x *chrome) mistake(p *running, r *wire.Record) {
	e := r.AsDiag()
	t := p.tag(e.Tag())
	f := stats.FindingOf(r, &p.kernels)
	if e.Tag() != 0 {
		f.Tag = t.name
	}
	key := mistakeKey{e.Diag(), f.Function, f.Kernel, t}
	if _, known := p.mistakes[key]; known || !t.chosen || len(p.mistakes) == stats.FindingsMax {
		return
	}
	p.mistakes[key] = struct{}{}
	x.out.event(`{"ph":"i","cat":"mistake","name":`, quote(f.Text(units.FormatLong)), x.lane(p, r.Thread).at, x.at(max(x.heap.Now, r.Time)))
	x.out.raw(`,"s":"p"`)
	x.out.args()
	x.out.word(`"kind":`, units.Key(f.Kind.String()))
	x.out.raw(`,"function":` + quote(f.Function))
	x.out.raw(`,"tag":` + t.quoted)
	x.out.number(`,"bytes":`, f.Size)
	x.out.number(`,"object":`, e.Object())
	x.out.signed(`,"status":`, int64(f.Status))
	x.out.truth(`,"certain":`, f.Certain())
	x.out.close()
}
