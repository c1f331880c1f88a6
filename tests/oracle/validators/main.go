// Validators answers whether an API server of Kubernetes 1.37 would create an object.
//
// It reads one JSON object per line, runs it through decoding, defaults and the create strategy of
// its kind, and writes one JSON answer per line: {"errors": [...]}, each with the field, the type
// and the text, or none and the object as it would be "stored"; "decode" where it cannot be read.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
)

const namespace = "default"

type problem struct {
	Field  string `json:"field"`
	Type   string `json:"type"`
	Detail string `json:"detail"`
}

type answer struct {
	Decode string          `json:"decode,omitempty"`
	Errors []problem       `json:"errors"`
	Stored json.RawMessage `json:"stored,omitempty"`
}

// strategies holds what the API server runs before it stores a new object of a kind.
func strategies() map[string]rest.RESTCreateStrategy {
	// The namespace admits admin access, so that claims with it are judged by everything else.
	admits := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"resource.kubernetes.io/admin-access": "true"},
	}}
	namespaces := fake.NewSimpleClientset(admits).CoreV1().Namespaces()
	return map[string]rest.RESTCreateStrategy{
		"DeviceClass":   deviceclass.Strategy,
		"ResourceClaim": resourceclaim.NewStrategy(namespaces, nil),
		"ResourceSlice": resourceslice.Strategy,
	}
}

// read decodes and sets defaults, as the API server does.
func read(line []byte) (runtime.Object, *schema.GroupVersionKind, error) {
	return legacyscheme.Codecs.UniversalDecoder(
		schema.GroupVersion{Group: "resource.k8s.io", Version: runtime.APIVersionInternal},
	).Decode(line, nil, nil)
}

func judge(line []byte, known map[string]rest.RESTCreateStrategy) (result answer) {
	// The API server answers with status 500 where a validator panics, as cel-go does on some input.
	defer func() {
		if failure := recover(); failure != nil {
			result = answer{Decode: fmt.Sprint("panic: ", failure)}
		}
	}()
	object, kind, err := read(line)
	if err != nil {
		return answer{Decode: err.Error()}
	}
	strategy, ok := known[kind.Kind]
	if !ok {
		return answer{Decode: fmt.Sprintf("no strategy for kind %q", kind.Kind)}
	}
	if err := prepare(object, strategy); err != nil {
		return answer{Decode: err.Error()}
	}
	scope := metav1.NamespaceNone
	if strategy.NamespaceScoped() {
		scope = namespace
	}
	ctx := genericapirequest.WithRequestInfo(
		genericapirequest.WithNamespace(context.Background(), scope),
		&genericapirequest.RequestInfo{
			APIGroup: kind.Group, APIVersion: kind.Version, Verb: "create", IsResourceRequest: true,
		},
	)
	if found := problems(rest.BeforeCreate(strategy, ctx, object)); len(found) > 0 {
		return answer{Errors: found}
	}
	stored, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(kind.GroupVersion()), object)
	if err != nil {
		panic(err)
	}
	return answer{Errors: []problem{}, Stored: stored}
}

// prepare fills what the server's storage fills before the strategy runs.
func prepare(object runtime.Object, strategy rest.RESTCreateStrategy) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	accessor.SetUID("00000000-0000-4000-8000-000000000000")
	accessor.SetCreationTimestamp(metav1.NewTime(time.Unix(1, 0)))
	if accessor.GetName() == "" && accessor.GetGenerateName() != "" {
		accessor.SetName(strategy.GenerateName(accessor.GetGenerateName()))
	}
	return nil
}

func problems(err error) []problem {
	found := []problem{}
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case errors.As(err, &status) && status.Status().Details != nil:
		for _, cause := range status.Status().Details.Causes {
			found = append(found, problem{cause.Field, string(cause.Type), cause.Message})
		}
	default:
		found = append(found, problem{Detail: err.Error()})
	}
	return found
}

func main() {
	klog.SetLogger(klog.Logger{})
	known := strategies()
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			encoded, failure := json.Marshal(judge(line, known))
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
