package main

import "k8s.io/apimachinery/pkg/api/resource"

type quantityQuestion struct {
	Left  string `json:"left"`
	Right string `json:"right"`
}

type quantityAnswer struct {
	Error     string  `json:"error,omitempty"`
	Canonical string  `json:"canonical"`
	Integer   *int64  `json:"integer"`
	Float     float64 `json:"float"`
	Compare   int     `json:"compare"`
	Sum       string  `json:"sum"`
	Rest      string  `json:"rest"`
	SumInt    *int64  `json:"sumInteger"`
}

// canonical is the text Kubernetes computes; String() alone may repeat the text that was parsed.
func canonical(q resource.Quantity) string {
	number, suffix := q.CanonicalizeBytes(nil)
	return string(number) + string(suffix)
}

func integer(q resource.Quantity) *int64 {
	if value, ok := q.AsInt64(); ok {
		return &value
	}
	return nil
}

func measure(q quantityQuestion) quantityAnswer {
	left, err := resource.ParseQuantity(q.Left)
	if err != nil {
		return quantityAnswer{Error: err.Error()}
	}
	right, err := resource.ParseQuantity(q.Right)
	if err != nil {
		return quantityAnswer{Error: err.Error()}
	}
	result := quantityAnswer{
		Canonical: canonical(left.DeepCopy()),
		Integer:   integer(left.DeepCopy()),
		Float:     left.AsApproximateFloat64(),
	}
	sum := left.DeepCopy()
	sum.Add(right.DeepCopy())
	rest := left.DeepCopy()
	rest.Sub(right.DeepCopy())
	result.Sum, result.Rest, result.SumInt = canonical(sum), canonical(rest), integer(sum)
	compared := left.DeepCopy()
	result.Compare = compared.Cmp(right.DeepCopy())
	return result
}
