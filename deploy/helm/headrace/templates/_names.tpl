{{/* The name of everything in this release. Pods add a group, an ordinal and a hash of their own, so it is kept short. */}}
{{- define "headrace.name" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- default $name .Values.fullnameOverride | trunc 32 | trimSuffix "-" -}}
{{- end -}}

{{/* What selects the brokers of this release, of all groups. Never changes. */}}
{{- define "headrace.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: broker
{{- end -}}

{{- define "headrace.labels" -}}
{{ include "headrace.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Where a pod is found by others: its own name goes before this. */}}
{{- define "headrace.domain" -}}
{{ include "headrace.name" . }}-brokers.$(POD_NAMESPACE).svc.{{ .Values.clusterDomain }}
{{- end -}}
