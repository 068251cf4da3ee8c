package devicebench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/devicebench/cl"
)

// ChildEnv is the variable that makes a process of this program a child that measures: see Child.
const ChildEnv = "GPUMEMTOP_MEASURE"

// order is what a child shall do: name the devices, or measure one.
type order struct {
	List   bool          `json:"list,omitempty"`
	Device int           `json:"device,omitempty"` // counted over all platforms
	Most   uint64        `json:"most,omitempty"`   // bytes, the largest size; 0: a quarter of the device's largest allocation
	Budget time.Duration `json:"budget,omitempty"`
}

// message is a line that a child writes: one of these.
type message struct {
	Device  *Facts   `json:"device,omitempty"`
	Sample  *sample  `json:"sample,omitempty"`
	Part    *subCost `json:"part,omitempty"`
	Note    string   `json:"note,omitempty"`
	Failure string   `json:"failure,omitempty"` // what a driver said
	End     bool     `json:"end,omitempty"`     // nothing follows
}

// subCost is what a part of a buffer cost, ns.
type subCost struct {
	Create  float64 `json:"create"`
	Release float64 `json:"release"`
}

// toldOn is the descriptor that a child writes to: drivers write what they like to standard output.
const toldOn = 3

// RunChild does in this process what the value of ChildEnv asks for, and returns its exit status. It ends early when its
// standard input does. The process should do nothing else before or after.
func RunChild(request string) int {
	var o order
	if err := json.Unmarshal([]byte(request), &o); err != nil {
		fmt.Fprintf(os.Stderr, "%s is not for you to set: %v\n", ChildEnv, err)
		return 1
	}
	unix.CloseOnExec(toldOn) // what a driver starts is not to hold it
	out := json.NewEncoder(os.NewFile(toldOn, "pipe"))
	// When memory runs out after all it is this process that goes. A system that does not let us say so has other ways.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	var stopped atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stopped.Store(true)
	}()
	runtime.LockOSThread() // what a driver keeps for each thread shall not have to be made again
	last := message{End: true}
	if err := o.carryOutOrder(out, stopped.Load); err != nil {
		last.Failure = err.Error()
	}
	if out.Encode(last) != nil {
		return 1 // no reader
	}
	return 0
}

func (o *order) carryOutOrder(out *json.Encoder, stop func() bool) error {
	devices, err := devicesOfAllPlatforms()
	if err != nil {
		return err
	}
	if o.List {
		for i := range devices {
			if err := out.Encode(message{Device: &devices[i].facts}); err != nil {
				return err
			}
		}
		return nil
	}
	if o.Device >= len(devices) {
		return fmt.Errorf("device %d is gone: there are %d", o.Device, len(devices))
	}
	return o.measureDevice(devices[o.Device], out, stop)
}

// found is a device and what its driver says of it.
type found struct {
	device cl.Device
	facts  Facts
}

// devicesOfAllPlatforms returns those of all platforms in the order in which the loader names them. An error of one platform is
// returned only where no other has a device.
func devicesOfAllPlatforms() ([]found, error) {
	if err := cl.Load(); err != nil {
		return nil, err
	}
	platforms, err := cl.PlatformIDs()
	if err != nil {
		return nil, err
	}
	var list []found
	var failures error
	for _, platform := range platforms {
		devices, err := platform.DeviceIDs()
		failures = errors.Join(failures, err)
		for _, d := range devices {
			list = append(list, found{d, factsOfDevice(platform, d)})
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	return nil, failures
}

func factsOfDevice(p cl.Platform, d cl.Device) Facts {
	return Facts{
		Device: d.Name(), Driver: d.DriverVersion(), Version: d.Version(), Platform: p.Name(),
		ComputeUnits: d.MaxComputeUnits(), GlobalMemory: d.GlobalMemSize(), MaxAlloc: d.MaxMemAllocSize(),
		LocalMemory: d.LocalMemSize(), CacheLine: d.GlobalMemCachelineSize(), BaseAlign: d.MemBaseAddrAlign(),
		Unified: d.HostUnifiedMemory(), MaxConstant: d.MaxConstantBufferSize(),
		Images: d.ImageSupport(), ImageWidth: d.Image2DMaxWidth(), ImageHeight: d.Image2DMaxHeight(),
	}
}

// measureDevice measures a device and writes what it finds at once, so that a driver that crashes takes nothing of it along.
func (o *order) measureDevice(f found, out *json.Encoder, stop func() bool) error {
	d, err := openDevice(f.device)
	if err != nil {
		return err
	}
	var unread error
	tell := func(m message) {
		if err := out.Encode(m); err != nil {
			unread = err
		}
	}
	s := &sampler{
		d: d, sizes: sizesToTest(f.facts.MaxAlloc, o.Most), align: uint64(f.facts.BaseAlign), budget: o.Budget,
		stop:  func() bool { return unread != nil || stop() },
		tell:  func(s *sample) { tell(message{Sample: s}) },
		parts: func(create, release float64) { tell(message{Part: &subCost{create, release}}) },
		note:  func(text string) { tell(message{Note: text}) },
	}
	return errors.Join(s.measureAll(), unread, d.session.Close())
}
