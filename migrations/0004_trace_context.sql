-- additive
-- The trace of the request that caused an event (W3C Trace Context): its traceparent, and its tracestate after a space.
-- Null when no request did; such an event is the start of a trace of its own.
alter table event_occurrence add column trace_context text;
