"""What a broker does for replicas on several brokers: it fetches from leaders, and proposes who is in sync.
Loaded only where there is more than one broker.
"""
