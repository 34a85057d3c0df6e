{{/* The name of the release's objects. It has at most 62 characters, since Helm allows 53 for a release. */}}
{{- define "windlass.name" -}}
{{- if contains "windlass" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-windlass{{ end }}
{{- end }}

{{/* The name of what is not in the release's namespace. Releases of one name may be in several namespaces. */}}
{{- define "windlass.nameElsewhere" -}}
{{ include "windlass.name" . }}:{{ .Release.Namespace }}
{{- end }}

{{/* The same, where a colon is not allowed. No namespace has a dot in its name. */}}
{{- define "windlass.domainElsewhere" -}}
{{ include "windlass.name" . }}.{{ .Release.Namespace }}
{{- end }}

{{/* By which the pods are found; it can never be changed. */}}
{{- define "windlass.selectorLabels" -}}
app.kubernetes.io/name: windlass
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: controller
{{- end }}

{{- define "windlass.labels" -}}
{{ include "windlass.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The name of the webhook's objects, which must fit a Service. */}}
{{- define "windlass.webhook" -}}
{{- $name := include "windlass.name" . }}
{{- if gt (len $name) 55 }}{{ trunc 46 $name | trimSuffix "-" }}-{{ sha256sum $name | trunc 8 }}{{ else }}{{ $name }}{{ end }}-webhook
{{- end }}

{{- define "windlass.webhookSelectorLabels" -}}
app.kubernetes.io/name: windlass
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: webhook
{{- end }}

{{- define "windlass.webhookLabels" -}}
{{ include "windlass.webhookSelectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "windlass.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The selector as one text. */}}
{{- define "windlass.selector" -}}
{{- $selector := .Values.spec.labelSelector }}
{{- if kindIs "slice" $selector }}{{ join "," $selector }}{{ else }}{{ trim $selector }}{{ end }}
{{- end }}

{{/* Who the roles are for. */}}
{{- define "windlass.subjects" -}}
- kind: ServiceAccount
  name: {{ include "windlass.name" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end }}
