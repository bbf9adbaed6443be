{{- define "signalbox.name" -}}
{{ printf "%s-signalbox" .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "signalbox.labels" -}}
app.kubernetes.io/name: signalbox
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "signalbox.allLabels" -}}
{{ include "signalbox.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The user of the image, without rights; the root file system is read-only because the service writes no file. */}}
{{- define "signalbox.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "signalbox.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "signalbox.image" -}}
{{- with .Values.image.digest }}
image: {{ printf "%s@%s" $.Values.image.repository . | quote }}
{{- else }}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
{{- end }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "signalbox.environment" -}}
env:
  {{- with .roles }}
  - name: SIGNALBOX_ROLES
    value: {{ join "," . | quote }}
  - name: SHUTDOWN_DELAY_SECONDS
    value: {{ $.Values.shutdownDelaySeconds | quote }}
  {{- end }}
  - name: APP_ENV
    value: production
  - name: HOST
    value: 0.0.0.0
  - name: PORT
    value: '3000'
  - name: BASE_URL
    value: {{ required "Set baseUrl to the address that users see, such as https://signalbox.example.com." .Values.baseUrl | quote }}
  - name: METRICS_PORT
    value: {{ .Values.metrics.port | quote }}
  {{- range $name, $value := .Values.settings }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- include "signalbox.database" . | nindent 2 }}
{{- if .Values.secretFiles }}
  {{- range .Values.secretFiles }}
  - name: {{ . }}_FILE
    value: /run/secrets/signalbox/{{ . }}
  {{- end }}
volumeMounts:
  - name: secrets
    mountPath: /run/secrets/signalbox
    readOnly: true
{{- else }}
envFrom:
  - secretRef:
      name: {{ .Values.existingSecret }}
{{- end }}
{{- end }}

{{/* A variable of `env` wins over the same key of `envFrom`. A password of CloudNativePG has letters and digits alone. */}}
{{- define "signalbox.database" -}}
{{- with .Values.cloudnativepg.cluster }}
{{- $secret := printf "%s-app" . }}
{{- if has "DATABASE_URL" $.Values.secretFiles }}{{ fail "secretFiles must not list DATABASE_URL: cloudnativepg.cluster gives it." }}{{ end }}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef: { name: {{ $secret }}, key: uri }
{{- if $.Values.cloudnativepg.readReplicas }}
{{- range $name, $key := dict "CLUSTER_USER" "username" "CLUSTER_PASSWORD" "password" "CLUSTER_DATABASE" "dbname" }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $secret }}, key: {{ $key }} }
{{- end }}
- name: DATABASE_READ_URL
  value: postgres://$(CLUSTER_USER):$(CLUSTER_PASSWORD)@{{ . }}-ro:5432/$(CLUSTER_DATABASE)
{{- end }}
{{- end }}
{{- end }}

{{- define "signalbox.volumes" -}}
{{- if .Values.secretFiles }}
volumes:
  - name: secrets
    secret:
      secretName: {{ .Values.existingSecret }}
      # 0440 in octal: the group of the process may read; nobody may write.
      defaultMode: 288
      items:
        {{- range .Values.secretFiles }}
        - key: {{ . }}
          path: {{ . }}
        {{- end }}
{{- end }}
{{- end }}

{{- define "signalbox.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
