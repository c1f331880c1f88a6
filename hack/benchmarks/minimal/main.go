// A minimal DRA driver for side-by-side measurements: the kubeletplugin helper of
// k8s.io/dynamic-resource-allocation, eight devices, and for each claim the same
// writes as Dragoon's on a simulated GPU, in the same order: the journal entry as
// begun (temp, fsync, rename, fsync of the folder), a marker file and a CDI spec
// (temp, rename), the journal entry as done (temp, fsync, rename). It reads nothing
// back and locks nothing. Tells how long each GET of a claim took, one JSON line on
// stdout for each.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// timedTransport measures the GETs of claims, and makes them longer by wait.
type timedTransport struct {
	next http.RoundTripper
	out  *json.Encoder
	mu   *sync.Mutex
	wait time.Duration
}

func (t timedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || !strings.Contains(request.URL.Path, "/resourceclaims/") {
		return t.next.RoundTrip(request)
	}
	started := time.Now()
	time.Sleep(t.wait)
	response, err := t.whole(request)
	t.mu.Lock()
	defer t.mu.Unlock()
	if failed := t.out.Encode(map[string]float64{"api_s": time.Since(started).Seconds()}); failed != nil {
		return nil, failed
	}
	return response, err
}

// whole returns when the body has been read too, as Dragoon's own measurement does.
func (t timedTransport) whole(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

type driver struct {
	journal, markers, cdi, name string
	syncWait                    time.Duration
	mu                          sync.Mutex
	holders                     map[string]types.UID
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	answer := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		answer[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return answer, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	var devices []kubeletplugin.Device
	var specs []map[string]any
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		if err := d.hold(result.Device, claim.UID); err != nil {
			return nil, err
		}
		id := fmt.Sprintf("%s_%s_%s", claim.UID, result.Request, result.Device)
		specs = append(specs, map[string]any{
			"name":           id,
			"containerEdits": map[string]any{"env": []string{"DEVICE=" + result.Device}},
		})
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			CDIDeviceIDs: []string{d.name + "/claim=" + id},
		})
	}
	return devices, d.record(string(claim.UID), devices, specs)
}

// record does the writes of one claim.
func (d *driver) record(uid string, devices []kubeletplugin.Device, specs []map[string]any) error {
	entry := map[string]any{"claim": uid, "devices": devices, "state": "preparing"}
	if err := d.write(d.journal, uid, entry, true); err != nil {
		return err
	}
	if err := d.syncFolder(d.journal); err != nil {
		return err
	}
	for _, device := range devices {
		marker := map[string]any{"device": device.DeviceName, "simulated": true}
		if err := d.write(d.markers, uid+"_"+device.DeviceName, marker, false); err != nil {
			return err
		}
	}
	spec := map[string]any{"cdiVersion": "0.5.0", "kind": d.name + "/claim", "devices": specs}
	if err := d.write(d.cdi, uid, spec, false); err != nil {
		return err
	}
	entry["state"] = "prepared"
	return d.write(d.journal, uid, entry, true)
}

func (d *driver) hold(device string, claim types.UID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if holder, taken := d.holders[device]; taken && holder != claim {
		return fmt.Errorf("device %s is held by claim %s", device, holder)
	}
	d.holders[device] = claim
	return nil
}

// write stores content under folder/name.json by temp file and rename, synced if asked.
func (d *driver) write(folder, name string, content any, synced bool) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	target := filepath.Join(folder, name+".json")
	temp, err := os.OpenFile(target+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer temp.Close()
	if _, err := temp.Write(data); err != nil {
		return err
	}
	if synced {
		time.Sleep(d.syncWait)
		if err := temp.Sync(); err != nil {
			return err
		}
	}
	return os.Rename(target+".tmp", target)
}

func (d *driver) syncFolder(folder string) error {
	time.Sleep(d.syncWait)
	handle, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer handle.Close()
	return handle.Sync()
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	answer := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		answer[claim.UID] = d.unprepare(claim.UID)
	}
	return answer, nil
}

// unprepare removes what was written. No folder is synced: a power cut ends every container too.
func (d *driver) unprepare(claim types.UID) error {
	written, err := filepath.Glob(filepath.Join(d.markers, string(claim)+"_*.json"))
	if err != nil {
		return err
	}
	for _, folder := range []string{d.cdi, d.journal} {
		written = append(written, filepath.Join(folder, string(claim)+".json"))
	}
	for _, path := range written {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for device, holder := range d.holders {
		if holder == claim {
			delete(d.holders, device)
		}
	}
	return nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintln(os.Stderr, message, err)
}

func (d *driver) WatchHealthStatus(ctx context.Context, _ chan<- kubeletplugin.DeviceHealthReport) error {
	<-ctx.Done()
	return nil
}

func devices(count int) []resourceapi.Device {
	found := make([]resourceapi.Device, count)
	for i := range found {
		found[i].Name = fmt.Sprintf("gpu-%d", i)
	}
	return found
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	node := flag.String("node", "", "node name")
	name := flag.String("driver", "", "driver name")
	root := flag.String("kubelet-root", "", "kubelet root folder")
	cdi := flag.String("cdi", "", "CDI folder")
	serialize := flag.Bool("serialize", false, "one call at a time, the helper's default")
	apiWait := flag.Duration("api-wait", 0, "how much longer each GET of a claim takes")
	syncWait := flag.Duration("fsync-wait", 0, "how much longer each fsync takes")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the default limit of five calls a second would be all that is measured
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return timedTransport{next, json.NewEncoder(os.Stdout), &sync.Mutex{}, *apiWait}
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	data := filepath.Join(*root, "plugins", *name)
	journal, markers := filepath.Join(data, "journal"), filepath.Join(data, "markers")
	for _, folder := range []string{journal, markers, *cdi, filepath.Join(*root, "plugins_registry")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	plugin := &driver{journal: journal, markers: markers, cdi: *cdi, name: *name, syncWait: *syncWait, holders: map[string]types.UID{}}
	helper, err := kubeletplugin.Start(ctx, plugin,
		kubeletplugin.DriverName(*name),
		kubeletplugin.NodeName(*node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*root, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
		kubeletplugin.Serialize(*serialize),
		kubeletplugin.HealthService(false),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices(8)}}}
	if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{*node: pool}}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
