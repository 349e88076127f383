"""SOLID and SOLID++."""
