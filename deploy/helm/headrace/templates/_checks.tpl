{{/* What a schema cannot say. */}}
{{- define "headrace.checks" -}}
{{- $taken := dict -}}
{{- $names := dict -}}
{{- range $group := .Values.groups -}}
  {{- if hasKey $names $group.name -}}
    {{- fail (printf "groups: %s is there twice" $group.name) -}}
  {{- end -}}
  {{- $_ := set $names $group.name true -}}
  {{- range $i := until (int $group.replicas) -}}
    {{- $id := add (int $group.firstBrokerId) $i | toString -}}
    {{- if hasKey $taken $id -}}
      {{- fail (printf "groups: %s and %s both have a broker %s; give them firstBrokerId further apart" (get $taken $id) $group.name $id) -}}
    {{- end -}}
    {{- $_ := set $taken $id $group.name -}}
  {{- end -}}
{{- end -}}
{{- if and .Values.tls.enabled (not .Values.tls.secret) -}}
  {{- fail "tls.enabled needs tls.secret: a Secret with the brokers' certificate, its key and the authority" -}}
{{- end -}}
{{- if and .Values.metrics.tokenSecret (not .Values.tls.enabled) -}}
  {{- fail "metrics.tokenSecret needs tls.enabled: everybody on the way could read the token" -}}
{{- end -}}
{{- if and .Values.metrics.podMonitor .Values.tls.enabled (not .Values.metrics.tokenSecret) -}}
  {{- fail "metrics.podMonitor with tls.enabled needs metrics.tokenSecret: Prometheus has to say who it is" -}}
{{- end -}}
{{- if and .Values.zookeeper.setAcl (not .Values.zookeeper.tls.secret) -}}
  {{- fail "zookeeper.setAcl needs zookeeper.tls.secret: the certificate owns the nodes" -}}
{{- end -}}
{{- range $name := list "broker.id" "node.id" "broker.rack" "listeners" "advertised.listeners" "log.dirs" "zookeeper.connect" "headrace.metrics.listener" -}}
  {{- if hasKey $.Values.config $name -}}
    {{- fail (printf "config: the chart sets %s itself" $name) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
