-- W3C trace context of what brought an event about: its readers go on with that trace.
ALTER TABLE stream.event_pending ADD COLUMN traceparent text;
ALTER TABLE stream.event_log ADD COLUMN traceparent text;
