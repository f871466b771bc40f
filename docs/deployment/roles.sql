-- precheck_owner owns the ledger's tables. Runs use precheck, which can neither alter tables nor delete lines.
CREATE ROLE precheck_owner LOGIN;
CREATE ROLE precheck LOGIN;
CREATE DATABASE precheck OWNER precheck_owner;
