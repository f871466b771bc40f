-- The tables of the ledger belong to one role. Runs use another, which can neither change a table nor delete a line.
CREATE ROLE precheck_owner LOGIN;
CREATE ROLE precheck LOGIN;
CREATE DATABASE precheck OWNER precheck_owner;
