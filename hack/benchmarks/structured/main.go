// Structured measures kube-scheduler's structured allocator for hack/bench allocator.
//
// It reads one scenario as JSON and answers, as JSON, where each pod of it was placed and how many
// seconds the decisions took: decoding is not counted, and what is allocated is kept up from pod to
// pod instead of being collected anew, as kube-scheduler does it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
)

// The gates of kube-scheduler 1.37 with default settings.
var features = structured.Features{
	AdminAccess:             true,
	ConsumableCapacity:      true,
	DeviceBindingAndStatus:  true,
	DeviceTaints:            true,
	FractionalCapacityRange: true,
	PartitionableDevices:    true,
	PrioritizedList:         true,
}

// A scenario is a cluster and pods with one claim each, which stay where they are placed.
// Repeat says how often each pod is decided upon; only the last decision is kept.
type scenario struct {
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Nodes   []*v1.Node                   `json:"nodes"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
	Repeat  int                          `json:"repeat"`
}

type answer struct {
	Seconds float64    `json:"seconds"`
	Tried   int        `json:"tried"`
	Nodes   []int      `json:"nodes"`
	Devices [][]string `json:"devices"`
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("class %s not found", name)
}

type cluster struct {
	scenario
	state structured.AllocatedState
	cache *cel.Cache
	start int
	tried int
}

// place decides where a claim goes: the first node that fits, beginning behind the node of the
// last decision, as kube-scheduler's filtering does.
func (c *cluster) place(ctx context.Context, claim *resourceapi.ResourceClaim) (int, *resourceapi.AllocationResult) {
	allocator, err := structured.NewAllocator(ctx, features, c.state, classes(c.Classes), c.Slices, c.cache)
	check(err)
	for i := range c.Nodes {
		node := (c.start + i) % len(c.Nodes)
		c.tried++
		allocations, err := allocator.Allocate(ctx, c.Nodes[node], []*resourceapi.ResourceClaim{claim})
		check(err)
		if allocations != nil {
			return node, &allocations[0]
		}
	}
	return -1, nil
}

// keep marks what an allocation holds as allocated, and answers the names of the devices.
func (c *cluster) keep(allocation *resourceapi.AllocationResult) []string {
	var names []string
	for _, result := range allocation.Devices.Results {
		names = append(names, result.Device)
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if result.ShareID == nil {
			c.state.AllocatedDevices.Insert(id)
			continue
		}
		c.state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
		consumed := make(map[resourceapi.QualifiedName]resource.Quantity, len(result.ConsumedCapacity))
		for name, amount := range result.ConsumedCapacity {
			consumed[name] = amount
		}
		c.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, consumed))
	}
	return names
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "structured:", err)
		os.Exit(1)
	}
}

func main() {
	var c cluster
	check(json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20)).Decode(&c.scenario))
	c.cache = cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	c.state = structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	var found answer
	begin := time.Now()
	for _, claim := range c.Claims {
		var node int
		var allocation *resourceapi.AllocationResult
		for range c.Repeat {
			node, allocation = c.place(ctx, claim)
		}
		var names []string
		if allocation != nil {
			c.start = (node + 1) % len(c.Nodes)
			names = c.keep(allocation)
		}
		found.Nodes = append(found.Nodes, node)
		found.Devices = append(found.Devices, names)
	}
	found.Seconds = time.Since(begin).Seconds()
	found.Tried = c.tried
	check(json.NewEncoder(os.Stdout).Encode(found))
}
