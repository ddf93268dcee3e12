{{/* Names, labels and the image, shared by all templates. */}}

{{/* Labels of every object; takes root and operator. */}}
{{- define "edpm.labels" -}}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: edpm-operators
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{ include "edpm.selector" . }}
{{- end }}

{{/* Labels that select an operator's pods. */}}
{{- define "edpm.selector" -}}
app.kubernetes.io/name: {{ .operator }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{/* Name of an object that is seen beyond the release's namespace: no other release has it. */}}
{{- define "edpm.globalName" -}}
{{ .root.Release.Name }}.{{ .root.Release.Namespace }}.{{ .operator }}
{{- end }}

{{/* Name of the webhook's Service; its Secret is called the same with "-tls". */}}
{{- define "edpm.webhook" -}}
{{ .operator }}-webhook
{{- end }}

{{/* The namespaces to which admission is restricted; empty where the release works in all. */}}
{{- define "edpm.namespaceSelector" -}}
{{- with .Values.watchNamespaces -}}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: In
      values: [{{ join ", " . }}]
{{- end }}
{{- end }}

{{/* Whether cert-manager makes the webhook's certificate; empty where the operator does. */}}
{{- define "edpm.certManager" -}}
{{- if eq .Values.webhooks.certificates "cert-manager" }}true{{ end -}}
{{- end }}

{{/* The operators' image. */}}
{{- define "edpm.image" -}}
{{- $ask := "image.repository is not set: `cargo xtask images --push REGISTRY` prints the values" -}}
{{- $repository := required $ask .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}
