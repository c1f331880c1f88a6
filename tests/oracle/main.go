// Oracle answers what Kubernetes' own Go code does, for differential tests of Dragoon.
//
// It reads one JSON question per line and writes one JSON answer per line. A question has an
// "op": cel, quantity or allocate. An answer has either a result or an "error"; a question that
// cannot be read has "invalid".
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type question struct {
	Op string `json:"op"`

	CEL      celQuestion
	Quantity quantityQuestion
	Allocate allocateQuestion
}

func (q *question) UnmarshalJSON(data []byte) error {
	var head struct {
		Op string `json:"op"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	q.Op = head.Op
	switch head.Op {
	case "cel":
		return json.Unmarshal(data, &q.CEL)
	case "quantity":
		return json.Unmarshal(data, &q.Quantity)
	case "allocate":
		return json.Unmarshal(data, &q.Allocate)
	}
	return fmt.Errorf("unknown op %q", head.Op)
}

func answer(line []byte) (result any) {
	defer func() {
		if failure := recover(); failure != nil {
			result = map[string]any{"panic": fmt.Sprint(failure)}
		}
	}()
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return map[string]any{"invalid": err.Error()}
	}
	switch q.Op {
	case "cel":
		return evaluate(q.CEL)
	case "quantity":
		return measure(q.Quantity)
	default:
		return allocate(q.Allocate)
	}
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			encoded, failure := json.Marshal(answer(line))
			if failure != nil {
				panic(failure)
			}
			out.Write(encoded)
			out.WriteByte('\n')
			out.Flush()
		}
		if err != nil {
			return
		}
	}
}
