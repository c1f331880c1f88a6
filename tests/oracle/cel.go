package main

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// The gates of kube-scheduler 1.37 with default settings.
var celFeatures = cel.Features{EnableConsumableCapacity: true}

type celQuestion struct {
	Expression string             `json:"expression"`
	Driver     string             `json:"driver"`
	Device     resourceapi.Device `json:"device"`
}

type celAnswer struct {
	Compile string `json:"compile,omitempty"`
	Error   string `json:"error,omitempty"`
	Matches bool   `json:"matches"`
	Cost    uint64 `json:"cost"`
	// MaxCost is the estimate by which new objects are refused.
	MaxCost uint64 `json:"maxCost"`
}

func evaluate(q celQuestion) celAnswer {
	compiled := cel.GetCompiler(celFeatures).CompileCELExpression(q.Expression, cel.Options{})
	if compiled.Error != nil {
		return celAnswer{Compile: compiled.Error.Error()}
	}
	matches, details, err := compiled.DeviceMatches(context.Background(), cel.Device{
		Driver:                   q.Driver,
		AllowMultipleAllocations: q.Device.AllowMultipleAllocations,
		Attributes:               q.Device.Attributes,
		Capacity:                 q.Device.Capacity,
	})
	result := celAnswer{Matches: matches, MaxCost: compiled.MaxCost}
	if details != nil && details.ActualCost() != nil {
		result.Cost = *details.ActualCost()
	}
	if err != nil {
		result.Error = err.Error()
	}
	return result
}
