package export

import (
	"bytes"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// ShareSummary is what one range of sizes, or one class, has of a run.
type ShareSummary struct {
	Class        string  `json:"class,omitempty"`    // of a class
	Smallest     *uint64 `json:"smallest,omitempty"` // of a bucket: granted sizes from here
	Largest      *uint64 `json:"largest,omitempty"`  // to here
	Creates      uint64  `json:"creates"`
	Hits         uint64  `json:"hits"`
	Misses       uint64  `json:"misses"`
	HitRate      float64 `json:"hit_rate"`
	InUse        uint64  `json:"in_use"`
	BytesCached  uint64  `json:"bytes_cached"`
	BytesCooling uint64  `json:"bytes_cooling"`
	BlocksCached uint64  `json:"blocks_cached"`
}

// shares fills in what is counted by size and by class.
func (s *Summary) shares(from *model.Snapshot) {
	s.PerBucket, s.PerClass = []ShareSummary{}, []ShareSummary{}
	for i := range from.Buckets {
		b := &from.Buckets[i]
		summary := shareSummary(&b.Share)
		summary.Smallest, summary.Largest = &b.Smallest, &b.Largest
		s.PerBucket = append(s.PerBucket, summary)
	}
	for i := range from.Classes {
		summary := shareSummary(&from.Classes[i].Share)
		summary.Class = from.Classes[i].Name
		s.PerClass = append(s.PerClass, summary)
	}
}

func shareSummary(s *model.Share) ShareSummary {
	return ShareSummary{
		Creates: s.Creates, Hits: s.Hits, Misses: s.Misses, HitRate: s.HitRate(), InUse: s.InUse,
		BytesCached: s.Cached, BytesCooling: s.Cooling, BlocksCached: s.Blocks,
	}
}

// slabsText says how much of the slabs is free, "" without any.
func slabsText(t *model.Totals) string {
	if t.Slabs == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s, %s of them free", t.Slabs, size.FormatLong(t.SlabBytes), size.FormatLong(t.SlabFree))
}

// reportShares tells sizes and classes apart, where there are several.
func reportShares(b *bytes.Buffer, s *model.Snapshot, most int) {
	if len(s.Buckets) > 1 {
		heading(b, "buckets")
		buckets, left := topOf(s.Buckets, most)
		table(b, func(w io.Writer) {
			fmt.Fprintln(w, shareHead+"\t  granted")
			for i := range buckets {
				fmt.Fprintf(w, "%s\t  from %s\n", shareRow(&buckets[i].Share), size.Format(buckets[i].Smallest))
			}
		})
		reportMore(b, left)
	}
	if len(s.Classes) > 1 {
		heading(b, "classes")
		classes, left := topOf(s.Classes, most)
		table(b, func(w io.Writer) {
			fmt.Fprintln(w, shareHead+"\t  class")
			for i := range classes {
				fmt.Fprintf(w, "%s\t  %s\n", shareRow(&classes[i].Share), classes[i].Name)
			}
		})
		reportMore(b, left)
	}
}

const shareHead = "in use\tcached\tblocks\tcreates\thits\tmisses\thit rate"

func shareRow(s *model.Share) string {
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%s", size.Format(s.InUse), size.Format(s.Cached+s.Cooling), s.Blocks,
		s.Creates, s.Hits, s.Misses, percent(s.HitRate(), s.Hits+s.Misses))
}

func reportMore(b *bytes.Buffer, left int) {
	if left > 0 {
		fmt.Fprintf(b, "and %d more\n", left)
	}
}
