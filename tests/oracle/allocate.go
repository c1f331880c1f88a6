package main

import (
	"context"
	"errors"
	"fmt"
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

// How long one attempt may take; kube-scheduler gives it 10 seconds.
const patience = 2 * time.Second

var cache = cel.NewCache(100, celFeatures)

type allocateQuestion struct {
	Claims    []*resourceapi.ResourceClaim `json:"claims"`
	Classes   classes                      `json:"classes"`
	Slices    []*resourceapi.ResourceSlice `json:"slices"`
	Allocated []*resourceapi.ResourceClaim `json:"allocated"`
	Node      v1.Node                      `json:"node"`
}

type allocateAnswer struct {
	Error       string                         `json:"error,omitempty"`
	OnNode      bool                           `json:"onNode,omitempty"`
	Stopped     bool                           `json:"stopped,omitempty"`
	Allocations []resourceapi.AllocationResult `json:"allocations"`
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

// stateOf collects what claims hold, as kube-scheduler's allocated devices tracker does.
func stateOf(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			consumed := make(map[resourceapi.QualifiedName]resource.Quantity, len(result.ConsumedCapacity))
			for name, amount := range result.ConsumedCapacity {
				consumed[name] = amount
			}
			state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, consumed))
		}
	}
	return state
}

func allocate(q allocateQuestion) allocateAnswer {
	ctx, cancel := context.WithTimeout(klog.NewContext(context.Background(), klog.Logger{}), patience)
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, features, stateOf(q.Allocated), q.Classes, q.Slices, cache)
	if err != nil {
		return allocateAnswer{Error: err.Error()}
	}
	allocations, err := allocator.Allocate(ctx, &q.Node, q.Claims)
	if err != nil {
		return allocateAnswer{
			Error:   err.Error(),
			OnNode:  errors.Is(err, structured.ErrFailedAllocationOnNode),
			Stopped: errors.Is(err, context.DeadlineExceeded),
		}
	}
	return allocateAnswer{Allocations: allocations}
}
