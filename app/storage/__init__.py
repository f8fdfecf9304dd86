"""PostgreSQL: tables, repositories, and the tenant's condition in every statement."""
