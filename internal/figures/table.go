package figures

import "codeberg.org/gpumemtop/gpumemtop/internal/stats"

// Why figures are unknown.
const (
	noPool      = "there was no pool"
	noRequest   = "no request was poolable"
	noIteration = "no iterations were found, so growth is unknown"
	noRecording = "only a recording shows it"
	goesOn      = "the program goes on"
	noUses      = "no command was recorded"
)

// The figures of memory.
var (
	InUse = addToTable(Figure{
		Name: "in use", Meaning: "device memory that the program holds, as granted", Unit: Bytes, Better: Less,
		Key: "in_use", Scopes: InAll, Metric: "in_use_bytes", Lake: "in_use",
		get:   func(s *Subject) Value { return countValue(s.InUse) },
		site:  func(_ *Subject, t *stats.Tag) Value { return countValue(t.InUse) },
		share: func(s *stats.Share) Value { return countValue(s.InUse) },
	})
	Held = addToTable(Figure{
		Name: "held", Meaning: "the most in use in the last second", Unit: Bytes, Better: Less, Metric: "held_bytes",
		get: func(s *Subject) Value { return countValue(s.Held) },
	})
	Requested = addToTable(Figure{
		Name: "requested", Meaning: "bytes that the program asked for, of what it holds", Unit: Bytes, Better: Neither, Metric: "requested_bytes",
		get: func(s *Subject) Value { return countValue(s.Requested) },
	})
	Cached = addToTable(Figure{
		Name: "cached", Meaning: "free in the pool", Unit: Bytes, Better: Less,
		Key: "bytes_cached", Scopes: InAll, Metric: "cached_bytes",
		get:   func(s *Subject) Value { return countValue(s.Cached) },
		site:  func(_ *Subject, t *stats.Tag) Value { return countValue(t.Cached) },
		share: func(s *stats.Share) Value { return countValue(s.Cached) },
	})
	Idle = addToTable(Figure{
		Name: "idle", Meaning: "of cached: served no request for 10 s, or for a quarter of a run of so far 0.04 to 40 s", Unit: Bytes, Better: Less, Pool: true,
		Key: "bytes_idle", Scopes: InRun | InProcess | InSite, Metric: "idle_bytes",
		get:  func(s *Subject) Value { return countValue(s.Idle) },
		site: func(_ *Subject, t *stats.Tag) Value { return countValue(t.Idle) },
	})
	LargestCached = addToTable(Figure{
		Name: "largest cached", Meaning: "the largest free block, or free range in a slab", Unit: Bytes, Better: More, Together: Most,
		Key: "largest_cached", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.LargestCached) },
	})
	BlocksCached = addToTable(Figure{
		Name: "blocks cached", Column: "blocks", Meaning: "free blocks in the pool", Unit: Count, Better: Neither, Pool: true,
		Key: "blocks_cached", Scopes: InShare,
		share: func(s *stats.Share) Value { return countValue(s.Blocks) },
	})
	Cooling = addToTable(Figure{
		Name: "cooling", Meaning: "released, but queued commands still use it", Unit: Bytes, Better: Less,
		Key: "bytes_cooling", Scopes: InRun | InProcess | InShare, Metric: "cooling_bytes",
		get:   func(s *Subject) Value { return countValue(s.Cooling) },
		share: func(s *stats.Share) Value { return countValue(s.Cooling) },
	})
	Reserved = addToTable(Figure{
		Name: "reserved", Meaning: "in use + cached + cooling: what the driver has given out", Unit: Bytes, Better: Less, Metric: "reserved_bytes",
		get: func(s *Subject) Value { return countValue(s.Totals.ReservedBytes()) },
	})
	PeakInUse = addToTable(Figure{
		Name: "peak in use", Column: "peak", Meaning: "the most in use at one time", Unit: Bytes, Better: Less, Together: Peak,
		Key: "peak_in_use", Scopes: InRun | InProcess | InSite, Rule: "max_peak_in_use", Metric: "peak_in_use_bytes", Lake: "peak_in_use", Diff: Amount,
		get:  func(s *Subject) Value { return countValue(s.PeakInUse) },
		site: func(_ *Subject, t *stats.Tag) Value { return countValue(t.PeakInUse) },
	})
	PeakReserved = addToTable(Figure{
		Name: "peak reserved", Meaning: "the most reserved at one time", Unit: Bytes, Better: Less, Together: Peak,
		Key: "peak_reserved", Scopes: InRun | InProcess, Rule: "max_peak_reserved", Metric: "peak_reserved_bytes", Lake: "peak_reserved", Diff: Amount,
		get: func(s *Subject) Value { return countValue(s.PeakReserved) },
	})
	PeakRequested = addToTable(Figure{
		Name: "peak requested", Meaning: "the most requested at one time, of what is in use", Unit: Bytes, Better: Less, Together: Peak,
		Key: "peak_requested", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.PeakRequested) },
	})
	PeakCached = addToTable(Figure{
		Name: "peak cached", Meaning: "the most cached at one time", Unit: Bytes, Better: Less, Together: Peak,
		Key: "peak_cached", Scopes: InRun, Rule: "max_peak_cached",
		get: func(s *Subject) Value { return countValue(s.PeakCached) },
	})
	PeakIdle = addToTable(Figure{
		Name: "peak idle", Meaning: "the most idle at one time, looked at ten times a second, in reports more often", Unit: Bytes, Better: Less, Together: Peak, Pool: true,
		Key: "peak_idle", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.PeakIdle) },
	})
	PeakCooling = addToTable(Figure{
		Name: "peak cooling", Meaning: "the most cooling at one time", Unit: Bytes, Better: Less, Together: Peak,
		Key: "peak_cooling", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.PeakCooling) },
	})
	PeakSlabs = addToTable(Figure{
		Name: "peak slabs", Meaning: "the most slabs at one time", Unit: Count, Better: Less, Together: Peak,
		Key: "peak_slabs", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.PeakSlabs) },
	})
	Slabs = addToTable(Figure{
		Name: "slabs", Meaning: "slabs that the pool has", Unit: Count, Better: Neither,
		Key: "slabs", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.Slabs) },
	})
	SlabBytes = addToTable(Figure{
		Name: "slab bytes", Meaning: "sum of the sizes of its slabs", Unit: Bytes, Better: Neither,
		Key: "slab_bytes", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.SlabBytes) },
	})
	ReleasedInFlight = addToTable(Figure{
		Name: "released in flight", Meaning: "given back to the driver before the program had waited for the commands that use it: the driver may hold it until they end",
		Unit: Bytes, Better: Less, Unknown: noUses, Key: "released_in_flight", Scopes: InRun | InProcess, Metric: "released_in_flight_bytes",
		get: func(s *Subject) Value { return s.valueIfUsesKnown(s.InFlight.Now) },
	})
	PeakReleasedInFlight = addToTable(Figure{
		Name: "peak released in flight", Meaning: "the most released in flight at one time", Unit: Bytes, Better: Less, Together: Peak, Unknown: noUses,
		Key: "peak_released_in_flight", Scopes: InRun | InProcess, Rule: "max_peak_released_in_flight",
		Metric: "peak_released_in_flight_bytes", Lake: "peak_released_in_flight",
		get: func(s *Subject) Value { return s.valueIfUsesKnown(s.InFlight.Peak) },
	})
	ReleasesInFlight = addToTable(Figure{
		Name: "releases in flight", Column: "in flight", Meaning: "releases of such memory", Unit: Count, Better: Less, Unknown: noUses,
		Key: "releases_in_flight", Scopes: InRun | InProcess | InSite, Metric: "releases_in_flight_total", Lake: "releases_in_flight",
		get:  func(s *Subject) Value { return s.valueIfUsesKnown(s.InFlight.Releases) },
		site: func(_ *Subject, t *stats.Tag) Value { return countValue(t.InFlight.Releases) },
	})
	BytesReleasedInFlight = addToTable(Figure{
		Name: "bytes released in flight", Column: "bytes", Meaning: "sum of what these releases gave back", Unit: Bytes, Better: Less, Unknown: noUses,
		Key: "bytes_released_in_flight", Scopes: InRun | InProcess | InSite, Metric: "bytes_released_in_flight_total", Lake: "bytes_released_in_flight",
		get:  func(s *Subject) Value { return s.valueIfUsesKnown(s.InFlight.Bytes) },
		site: func(_ *Subject, t *stats.Tag) Value { return countValue(t.InFlight.Bytes) },
	})
	BetweenDevices = addToTable(Figure{
		Name: "between devices", Meaning: "contents that a command needed on one device when only others of the context had them", Unit: Bytes, Better: Less,
		Unknown: noUses, Lake: "between_devices",
		get: func(s *Subject) Value { return s.valueIfUsesKnown(s.Totals.BetweenDevices) },
	})
	LiveBuffers = addToTable(Figure{
		Name: "live buffers", Column: "live", Meaning: "memory objects that the program holds", Unit: Count, Better: Less,
		Key: "live_buffers", Scopes: InProcess | InSite,
		get:  func(s *Subject) Value { return countValue(s.LiveBuffers) },
		site: func(_ *Subject, t *stats.Tag) Value { return countValue(t.Live) },
	})
	Leaked = addToTable(Figure{
		Name: "leaked", Meaning: "memory never released", Unit: Bytes, Better: Less, Unknown: goesOn,
		Whole: true, Rule: "max_leaked_bytes", Lake: "leaked", Diff: Amount,
		get: func(s *Subject) Value { return s.sumOfLeaks("", leakedBytes) }, site: func(s *Subject, t *stats.Tag) Value { return s.sumOfLeaks(t.Name, leakedBytes) },
	})
	LeakedBuffers = addToTable(Figure{
		Name: "leaked buffers", Meaning: "memory objects never released", Unit: Count, Better: Less, Unknown: goesOn,
		Whole: true, Rule: "max_leaked_buffers",
		get: func(s *Subject) Value { return s.sumOfLeaks("", leakedBuffers) }, site: func(s *Subject, t *stats.Tag) Value { return s.sumOfLeaks(t.Name, leakedBuffers) },
	})
	LeakedObjects = addToTable(Figure{
		Name: "leaked objects", Meaning: "events, kernels, queues and so on never released", Unit: Count, Better: Less,
		Whole: true, Rule: "max_leaked_objects",
		get: func(s *Subject) Value {
			return s.countLeakedObjects(func(t stats.ObjectType) bool { return t < stats.SubBuffers })
		},
	})
	LeakedEvents = addToTable(Figure{
		Name: "leaked events", Meaning: "events never released", Unit: Count, Better: Less,
		Whole: true, Rule: "max_leaked_events",
		get: func(s *Subject) Value {
			return s.countLeakedObjects(func(t stats.ObjectType) bool { return t == stats.Events })
		},
	})
	ObjectGrowth = addToTable(Figure{
		Name: "object growth", Meaning: "growth of events, kernels, queues and so on per iteration", Unit: Count, Better: Less, Together: Most, Unknown: noIteration,
		Whole: true, Rule: "max_object_growth",
		get: objectGrowthValue,
	})
)

// The figures of requests and of the pool that serves them.
var (
	Hits = addToTable(Figure{
		Name: "hits", Meaning: "poolable requests that the pool served without a create of the driver", Unit: Count, Better: More, Pool: true,
		Key: "hits", Scopes: InAll, Lake: "hits",
		get:   func(s *Subject) Value { return countValue(s.Hits) },
		site:  func(_ *Subject, t *stats.Tag) Value { return countValue(t.Hits) },
		share: func(s *stats.Share) Value { return countValue(s.Hits) },
	})
	HitRate = addToTable(Figure{
		Name: "hit rate", Meaning: "share of poolable requests that the pool served", Unit: Rate, Better: More, Together: Worked, Pool: true, Unknown: noRequest,
		Key: "hit_rate", Scopes: InAll, Rule: "min_hit_rate", Diff: Proportion,
		get:   func(s *Subject) Value { return s.rateIfPooled(s.HitRate(), s.Hits+s.Misses) },
		site:  func(s *Subject, t *stats.Tag) Value { return s.rateIfPooled(t.HitRate(), t.Hits+t.Misses) },
		share: func(s *stats.Share) Value { return rateValue(s.HitRate(), s.Hits+s.Misses) },
	})
	SteadyHitRate = addToTable(Figure{
		Name: "steady hit rate", Meaning: "hit rate of the later half of the requests", Unit: Rate, Better: More, Together: Worked, Pool: true,
		Unknown: noRequest, Key: "steady_hit_rate", Scopes: InRun, Rule: "min_steady_hit_rate",
		get: func(s *Subject) Value { return s.rateIfPooled(s.SteadyHitRate(), s.SteadyRequests) },
	})
	Misses = addToTable(Figure{
		Name: "misses", Meaning: "poolable requests that reached the driver", Unit: Count, Better: Less,
		Key: "misses", Scopes: InAll, Rule: "max_misses", Lake: "misses", Diff: TimedEvents, Pool: true,
		get:   func(s *Subject) Value { return countValue(s.Misses) },
		site:  func(_ *Subject, t *stats.Tag) Value { return countValue(t.Misses) },
		share: func(s *stats.Share) Value { return countValue(s.Misses) },
	})
	BytesRequested = addToTable(Figure{
		Name: "bytes requested", Meaning: "sum of all poolable requests", Unit: Bytes, Better: Neither,
		Key: "bytes_requested", Scopes: InRun | InProcess,
		get: func(s *Subject) Value { return countValue(s.BytesRequested) },
	})
	BytesAllocated = addToTable(Figure{
		Name: "bytes allocated", Meaning: "sum of the blocks and slabs that the driver created", Unit: Bytes, Better: Less,
		Key: "bytes_allocated", Scopes: InRun | InProcess,
		get: func(s *Subject) Value { return countValue(s.BytesAllocated) },
	})
	PeakWaste = addToTable(Figure{
		Name: "waste at the peak", Meaning: "(granted - requested) / granted at the peak", Unit: Rate, Better: Less, Together: Worked, Unknown: noRecording,
		Whole: true, Rule: "max_waste",
		get: peakWasteValue,
	})
	Waste = addToTable(Figure{
		Name: "waste", Meaning: "(granted - requested) / granted of what is in use", Unit: Rate, Better: Less, Together: Worked, Pool: true,
		Key: "waste", Scopes: InRun | InSite,
		get:  func(s *Subject) Value { return rateValue(s.Waste(), s.InUse) },
		site: func(_ *Subject, t *stats.Tag) Value { return rateValue(t.Waste(), t.InUse) },
	})
	ExternalFragmentation = addToTable(Figure{
		Name: "external fragmentation", Column: "frag", Meaning: "1 - largest free block or range / all that is cached", Unit: Rate, Better: Less, Together: Worked,
		Key: "external_fragmentation", Scopes: InRun, Rule: "max_external_fragmentation",
		get: func(s *Subject) Value { return rateValue(s.ExternalFragmentation(), s.Cached) },
	})
	QuadraticFragmentation = addToTable(Figure{
		Name: "quadratic fragmentation", Meaning: "1 - Σf²/F², f the size of each free block and range and F their sum", Unit: Rate, Better: Less, Together: Worked,
		Key: "external_fragmentation_quadratic", Scopes: InRun,
		get: func(s *Subject) Value { return rateValue(s.QuadraticFragmentation(), s.Cached) },
	})
	RootFragmentation = addToTable(Figure{
		Name: "root fragmentation", Meaning: "1 - √Σf²/F", Unit: Rate, Better: Less, Together: Worked,
		Key: "external_fragmentation_root", Scopes: InRun,
		get: func(s *Subject) Value { return rateValue(s.RootFragmentation(), s.Cached) },
	})
	HazardsAvoided = addToTable(Figure{
		Name: "hazards avoided", Meaning: "releases of buffers that commands still used, whose blocks were held back", Unit: Count, Better: Neither,
		Key: "hazards_avoided", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.HazardsAvoided) },
	})
	Exposed = addToTable(Figure{
		Name: "exposed", Meaning: "released buffers and images that had recycled memory, and that a kernel may have read before any command wrote to them",
		Unit: Count, Better: Less, Key: "exposed", Scopes: InRun | InProcess | InSite, Pool: true,
		get:  func(s *Subject) Value { return countValue(s.Exposed) },
		site: func(_ *Subject, t *stats.Tag) Value { return countValue(t.Exposed) },
	})
	ExposedNewZero = addToTable(Figure{
		Name: "exposed, new is zero", Meaning: "of those exposed, where new memory of the driver was zero in a trial", Unit: Count, Better: Less,
		Key: "exposed_new_zero", Scopes: InRun | InProcess, Pool: true,
		get: func(s *Subject) Value { return countValue(s.ExposedNewZero) },
	})
	Cleared = addToTable(Figure{
		Name: "cleared", Meaning: "released buffers and images that would have been exposed and that --scrub auto cleared before", Unit: Count,
		Key: "cleared", Scopes: InRun | InProcess, Pool: true,
		get: func(s *Subject) Value { return countValue(s.Cleared) },
	})
	GivenToOthers = addToTable(Figure{
		Name: "given to others", Meaning: "bytes of the pool that went back to the driver because other programs lacked memory", Unit: Bytes, Better: Neither,
		Key: "given_to_others", Scopes: InRun | InProcess, Pool: true,
		get: func(s *Subject) Value { return countValue(s.Relieved) },
	})
	Growth = addToTable(Figure{
		Name: "growth per iteration", Column: "growth", Meaning: "growth of memory per iteration: the lower of median and mean", Unit: Bytes, Better: Less, Together: Most, Unknown: noIteration,
		Whole: true, Rule: "max_growth", Diff: Amount,
		get: bufferGrowthValue,
	})
	Creates = addToTable(Figure{
		Name: "creates", Meaning: "successful creates of memory", Unit: Count, Better: Less,
		Key: "creates", Scopes: InProcess | InSite | InShare, Rule: "max_creates", Metric: "creates_total", By: "outcome", Lake: "creates", Diff: Events,
		get: func(s *Subject) Value { return countValue(s.Creates) }, parts: splitCreatesByOutcome,
		site:  func(_ *Subject, t *stats.Tag) Value { return countValue(t.Creates) },
		share: func(s *stats.Share) Value { return countValue(s.Creates) },
	})
	Failures = addToTable(Figure{
		Name: "failures", Meaning: "creates that failed", Unit: Count, Better: Less, Metric: "create_failures_total", By: "status", Lake: "failures",
		get: func(s *Subject) Value { return countValue(s.Failures) }, parts: splitFailuresByStatus,
	})
	Releases = addToTable(Figure{
		Name: "releases", Meaning: "last releases by the program", Unit: Count, Better: Neither, Metric: "releases_total",
		get: func(s *Subject) Value { return countValue(s.Releases) },
	})
)

// The figures of the driver and of time.
var (
	DriverCreates = addToTable(Figure{
		Name: "driver creates", Meaning: "creates that reached the driver", Unit: Count, Better: Less,
		Key: "driver_creates", Scopes: InRun | InProcess, Rule: "max_driver_creates", Diff: TimedEvents,
		get: func(s *Subject) Value { return countValue(s.DriverCreates) },
	})
	DriverReleases = addToTable(Figure{
		Name: "driver releases", Meaning: "memory returned to the driver: evicted blocks and unpooled memory", Unit: Count, Better: Less,
		Key: "driver_releases", Scopes: InRun,
		get: func(s *Subject) Value { return countValue(s.DriverReleases) },
	})
	DriverCreateP99 = addToTable(Figure{
		Name: "driver create p99", Meaning: "duration that 99 of 100 creates of the driver do not exceed", Unit: Nanos, Better: Less, Together: Worked,
		Key: "driver_create_p99_ns", Scopes: InRun | InProcess, Rule: "max_driver_create_p99", Metric: "driver_create_p99_seconds", Lake: "driver_create_p99_ns",
		get: func(s *Subject) Value { return countValue(s.DriverCreateP99) },
	})
	DriverCreate = addToTable(Figure{
		Name: "driver create", Meaning: "duration of a create of the driver that copies nothing, the median", Unit: Nanos, Better: Less, Together: Worked,
		Unknown: noRecording, Whole: true, Diff: Median,
		get: func(s *Subject) Value { return s.medianCallCost(createCostCurve) },
	})
	CopyingCreate = addToTable(Figure{
		Name: "driver create that copies", Meaning: "duration of a create of the driver that copies the program's bytes, the median", Unit: Nanos, Better: Less,
		Together: Worked, Unknown: noRecording, Whole: true, Diff: Median,
		get: func(s *Subject) Value { return s.medianCallCost(copyCostCurve) },
	})
	DriverRelease = addToTable(Figure{
		Name: "driver release", Meaning: "duration of a release by the driver, the median", Unit: Nanos, Better: Less, Together: Worked, Unknown: noRecording, Whole: true, Diff: Median,
		get: func(s *Subject) Value { return s.medianCallCost(releaseCostCurve) },
	})
	DriverTime = addToTable(Figure{
		Name: "time in the driver", Column: "driver time", Meaning: "time in the driver's creates and releases, of all threads", Unit: Nanos, Better: Less,
		Rule: "max_driver_time", Metric: "driver_seconds_total", Lake: "driver_ns", Diff: Duration,
		get: func(s *Subject) Value { return countValue(s.DriverNS) },
	})
	Saved = addToTable(Figure{
		Name: "time saved", Meaning: "time in the driver that hits saved", Unit: Nanos, Better: More, Estimate: true,
		Unknown: "too few calls were timed, or it is lost in their scatter", Metric: "saved_seconds_total", Lake: "saved_ns",
		get: func(s *Subject) Value { return countValue(s.Saved.NS) },
	})
	WallTime = addToTable(Figure{
		Name: "wall time", Meaning: "time from the start to the end of the program and of its processes", Unit: Seconds, Better: Less, Together: Most,
		Key: "wall_seconds", Scopes: InRun | InProcess, Diff: Duration,
		get: func(s *Subject) Value { return countValue(s.Ended - min(s.Began, s.Ended)) },
	})
)

// The figures of the program's mistakes and of what was recorded.
var (
	Transferred = addToTable(Figure{
		Name: "transferred", Meaning: "bytes that calls moved", Unit: Bytes, Better: Less, Metric: "transferred_bytes_total", By: "direction",
		Whole: true, parts: splitBytesByDirection,
	})
	DeviceMemory = addToTable(Figure{
		Name: "device memory", Meaning: "global memory of the first device", Unit: Bytes, Better: Neither, Together: Most, Metric: "device_bytes", Whole: true,
		get: func(s *Subject) Value { return countValue(s.Run.Device.Global) },
	})
	MachineMemory = addToTable(Figure{
		Name: "machine", Meaning: "what the machine reports of the processes' memory", Unit: Bytes, Better: Less, Metric: "machine_bytes", By: "source",
		Whole: true, parts: splitMachineBySource,
	})
	Findings = addToTable(Figure{
		Name: "findings", Meaning: "mistakes of the program, certain or not", Unit: Count, Better: Less, Metric: "findings_total", By: "kind",
		Whole: true, parts: splitMistakesByKind,
	})
	Mistakes = addToTable(Figure{
		Name: "mistakes", Meaning: "certain mistakes of the program", Unit: Count, Better: Less,
		Whole: true, Rule: "max_mistakes",
		get: countCertainMistakes,
	})
	SeenEvents = addToTable(Figure{
		Name: "events", Meaning: "events that gpumemtop got", Unit: Count, Better: Neither,
		Key: "events", Scopes: InRun, Whole: true,
		get: func(s *Subject) Value { return countValue(s.Run.Events) },
	})
	LostEvents = addToTable(Figure{
		Name: "lost events", Meaning: "events that were lost: figures may be too high or too low", Unit: Count, Better: Less,
		Key: "lost_events", Scopes: InRun, Whole: true, Rule: "max_lost_events", Metric: "lost_events_total", Lake: "lost_events",
		get: func(s *Subject) Value { return countValue(s.Run.Lost) },
	})
	LeftOut = addToTable(Figure{
		Name: "left out", Meaning: "what has no room: creates of more buffers and blocks than are kept at once, and files with names or lines of call sites",
		Unit: Count, Better: Less, Metric: "left_out_total", By: "kind", Whole: true, parts: splitLeftOut,
	})
)
