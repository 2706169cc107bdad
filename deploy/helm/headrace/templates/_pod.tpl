{{- define "headrace.pod" -}}
{{- $values := .root.Values -}}
serviceAccountName: {{ include "headrace.name" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
# SIGTERM is the hand-over: the broker gives its leaderships away before it stops, so there is no preStop.
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .group.zone }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - {key: {{ $values.zoneLabel }}, operator: In, values: [{{ . | quote }}]}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "headrace.selector" .root | nindent 8 }}
containers:
  - {{- include "headrace.container" . | nindent 4 }}
volumes:
  - {name: tmp, emptyDir: {}}
  - name: config
    secret: {secretName: {{ include "headrace.name" .root }}-config, defaultMode: 0440}
  {{- if $values.tls.enabled }}
  - name: tls
    secret: {secretName: {{ $values.tls.secret }}, defaultMode: 0440}
  {{- end }}
  {{- with $values.zookeeper.tls.secret }}
  - name: zookeeper
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
  {{- with $values.metrics.tokenSecret }}
  - name: metrics
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
{{- end -}}

{{- define "headrace.container" -}}
{{- $values := .root.Values -}}
{{- $domain := include "headrace.domain" .root -}}
name: broker
image: {{ $values.image.repository }}:{{ default .root.Chart.AppVersion $values.image.tag }}
imagePullPolicy: {{ $values.image.pullPolicy }}
args:
  - broker
  - --config=/etc/headrace/config/server.properties
  - --override=broker.id=$(BROKER_ID)
  {{- if .group.zone }}
  - --override=broker.rack={{ .group.zone }}
  {{- else }}
  - --override=broker.rack=$(NODE_NAME)
  {{- end }}
  {{- if $values.tls.enabled }}
  - --override=advertised.listeners=BROKERS://$(POD_NAME).{{ $domain }}:9093,CLIENTS://$(POD_NAME).{{ $domain }}:9094
  {{- else }}
  - --override=advertised.listeners=PLAINTEXT://$(POD_NAME).{{ $domain }}:9092
  {{- end }}
env:
  - name: BROKER_ID
    valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}
  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
ports:
  {{- if $values.tls.enabled }}
  - {name: brokers, containerPort: 9093}
  - {name: clients, containerPort: 9094}
  {{- else }}
  - {name: clients, containerPort: 9092}
  {{- end }}
  - {name: metrics, containerPort: 9404}
# The metrics are there once the logs are recovered and the cluster has admitted the broker.
startupProbe:
  {{- include "headrace.probe" (list .root "/healthz") | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: {{ mul 6 (int $values.startupMinutes) }}
livenessProbe:
  {{- include "headrace.probe" (list .root "/healthz") | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
# In sync, and in touch with ZooKeeper.
readinessProbe:
  {{- include "headrace.probe" (list .root "/readyz") | nindent 2 }}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 1
resources: {{- toYaml $values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: data, mountPath: /var/lib/headrace}
  - {name: tmp, mountPath: /tmp}
  - {name: config, mountPath: /etc/headrace/config, readOnly: true}
  {{- if $values.tls.enabled }}
  - {name: tls, mountPath: /etc/headrace/tls, readOnly: true}
  {{- end }}
  {{- if $values.zookeeper.tls.secret }}
  - {name: zookeeper, mountPath: /etc/headrace/zookeeper, readOnly: true}
  {{- end }}
  {{- if $values.metrics.tokenSecret }}
  - {name: metrics, mountPath: /etc/headrace/metrics, readOnly: true}
  {{- end }}
{{- end -}}

{{/* Without TLS the kubelet asks; with TLS it could not say who it is, so the pod asks itself. */}}
{{- define "headrace.probe" -}}
{{- $values := (index . 0).Values -}}
{{- if $values.tls.enabled -}}
exec:
  command:
    - python
    - /etc/headrace/config/probe.py
    - {{ index . 1 }}
    - /etc/headrace/tls/{{ $values.tls.keystore }}
    - /etc/headrace/tls/{{ $values.tls.ca }}
{{- else -}}
httpGet: {path: {{ index . 1 }}, port: metrics}
{{- end -}}
{{- end -}}
