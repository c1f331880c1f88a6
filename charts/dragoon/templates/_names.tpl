{{- define "dragoon.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "dragoon.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "dragoon.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that find pods; the version is not among them. Argument: (list . "plugin"). */}}
{{- define "dragoon.selector" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: {{ include "dragoon.name" $top }}
app.kubernetes.io/instance: {{ $top.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "dragoon.labels" -}}
{{- $top := index . 0 -}}
{{ include "dragoon.selector" . }}
app.kubernetes.io/part-of: dragoon
app.kubernetes.io/version: {{ $top.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $top.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $top.Chart.Name $top.Chart.Version }}
{{- end -}}

{{- define "dragoon.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{/* Files of the repository name the default driver; the value takes its place. */}}
{{- define "dragoon.driver" -}}
{{- $top := index . 0 -}}
{{ $top.Files.Get (index . 1) | replace "gpu.dragoon.dev" $top.Values.driverName }}
{{- end -}}

{{/* Annotations of what exists for a moment only. Argument: (list "pre-delete" 0): when, and in which order. */}}
{{- define "dragoon.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* Pods that need nothing of their node. */}}
{{- define "dragoon.nobody" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "dragoon.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
