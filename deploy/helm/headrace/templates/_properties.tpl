{{/* The file of every broker. What differs between brokers stands in the arguments of the pod. */}}
{{- define "headrace.properties" -}}
log.dirs=/var/lib/headrace/data
zookeeper.connect={{ .Values.zookeeper.connect }}
{{- if .Values.zookeeper.tls.secret }}
zookeeper.ssl.client.enable=true
zookeeper.ssl.keystore.location=/etc/headrace/zookeeper/{{ .Values.zookeeper.tls.keystore }}
zookeeper.ssl.truststore.location=/etc/headrace/zookeeper/{{ .Values.zookeeper.tls.ca }}
zookeeper.set.acl={{ .Values.zookeeper.setAcl }}
{{- end }}
{{- if .Values.tls.enabled }}
listeners=BROKERS://0.0.0.0:9093,CLIENTS://0.0.0.0:9094
listener.security.protocol.map=BROKERS:SSL,CLIENTS:SASL_SSL
inter.broker.listener.name=BROKERS
ssl.keystore.location=/etc/headrace/tls/{{ .Values.tls.keystore }}
ssl.truststore.location=/etc/headrace/tls/{{ .Values.tls.ca }}
listener.name.brokers.ssl.client.auth=required
sasl.enabled.mechanisms={{ join "," .Values.tls.saslMechanisms }}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users={{ join ";" .Values.tls.superUsers }}
headrace.metrics.listener=https://0.0.0.0:9404
{{- if .Values.metrics.tokenSecret }}
headrace.metrics.authentication=bearer,mtls
headrace.metrics.token.file=/etc/headrace/metrics/tokens
{{- else }}
headrace.metrics.authentication=mtls
{{- end }}
{{- else }}
listeners=PLAINTEXT://0.0.0.0:9092
headrace.metrics.listener=0.0.0.0:9404
headrace.metrics.authentication=none
{{- end }}
{{- range $name, $value := .Values.config }}
{{ $name }}={{ $value }}
{{- end }}
{{- end -}}
