-- Why a follow-up can never be delivered, such as run_cancelled; null for those given up before this was kept.
ALTER TABLE messages ADD COLUMN undeliverable_reason text;
