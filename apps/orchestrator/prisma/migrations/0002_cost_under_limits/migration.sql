-- What a call counts against cost limits and budgets, if that is not its cost: see costUnderLimits.
ALTER TABLE usage_rows ADD COLUMN limited_micros bigint;
