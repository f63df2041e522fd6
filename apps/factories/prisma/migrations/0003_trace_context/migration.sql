-- W3C trace context of what brought an event about: its readers go on with that trace.
ALTER TABLE stream.event_pending ADD COLUMN traceparent text;
ALTER TABLE stream.event_log ADD COLUMN traceparent text;
-- The same of work to be carried out.
ALTER TABLE stream.work_items ADD COLUMN traceparent text;
